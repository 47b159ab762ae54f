"""Rendered notebooks that come to their end: verified, again with nothing to do, after a restart,
in an environment of their own, without uv.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.colab.conftest import LIGHT
from tests.colab_rig.machine import Machine
from tests.colab_rig.notebook import Notebook
from tests.colab_rig.rendered import Rendered

pytestmark = pytest.mark.network
CUT = dict.fromkeys(
    ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"), "http://127.0.0.1:9"
)
"""A network whose way out is closed."""
RESTART = "application/vnd.colab-display-data+json"


def packages(machine: Machine) -> dict[str, tuple[int, int]]:
    """What lies installed, by metadata folder, with what a second installation would change."""
    return {
        path.parent.name: (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in machine.site.glob("*.dist-info/RECORD")
    }


def test_the_example_is_verified_and_then_again_with_nothing_to_install(
    trained: Rendered, trainer: Machine
) -> None:
    before = trainer.versions()
    with Notebook(trainer, trained.notebook) as notebook:
        ran = notebook.run_all()
        assert [one.ended for one in ran] == ["ok"] * len(notebook.code), ran[-1].text
        status, first, there = trainer.status, trainer.report, packages(trainer)
        assert (status["outcome"], status["stage"], status["restart"]) == ("verified", "report", [])
        assert status["nonce"] == trained.document["nonce"] == first["subject"]["nonce"]
        assert (first["verdict"]["result"], first["subject"]["proof"]) == ("verified", "torch")
        assert (
            status["report_sha256"]
            == hashlib.sha256((trainer.base / "report.json").read_bytes()).hexdigest()
        )
        assert str(status["report_sha256"]) in ran[0].text, "its digest is shown"
        added = {"einops", "safetensors"}
        assert trainer.versions().keys() - before.keys() == added
        assert {
            name: version for name, version in trainer.versions().items() if name not in added
        } == before, "nothing of the image was touched"
        assert status["counts"] == {
            "hash-checked": 2,
            "preinstalled": len(trained.document["install"]["packages"]) - 2,
            "reinstalled": 0,
        }
        told = notebook.run(
            "import os, sys; print('torch' in sys.modules, os.environ['TOKENIZERS_PARALLELISM'])"
        ).text
        assert told.split() == ["False", "false"], (
            "torch is the notebook's own to import, with the declared variables set before"
        )

        again = notebook.run(0)
        assert again.ended == "ok"
        assert "stored report" in again.text
        assert trainer.status["outcome"] == "verified"
        assert (trainer.report, packages(trainer)) == (first, there)

    trainer.variables.update({**CUT, "UV_CACHE_DIR": str(trainer.folder / "empty")})
    with Notebook(trainer, trained.notebook) as notebook:
        assert [one.ended for one in notebook.run_all()] == ["ok"] * len(notebook.code)
        assert (trainer.report, packages(trainer)) == (first, there), (
            "in another kernel, and without network"
        )
        assert (
            notebook.run("import torch, einops; print(torch.__version__)").text.strip()
            == before["torch"]
        )


@pytest.mark.long
def test_another_numpy_needs_a_restart_and_goes_on_after_it(
    render: Callable[..., Rendered], machine: Machine
) -> None:
    made = render(LIGHT.replace("[numpy,", "[numpy==2.1.3,"), "newer-numpy")
    assert made.document["predicted"]["restart"] == ["numpy"]
    before = machine.versions()
    with Notebook(machine, made.notebook) as notebook:
        ran = notebook.run_all()
        assert [one.ended for one in ran] == ["error"], (
            "Run all ends here, before any code of one's own"
        )
        assert "numpy" in ran[0].text
        assert "restart" in ran[0].text.lower()
        assert "Traceback" not in ran[0].text
        assert [one["pip_warning"]["packages"] for one in ran[0].shown(RESTART)] == [["numpy"]], (
            "Colab's own button"
        )
        assert (machine.status["outcome"], machine.status["restart"]) == (
            "restart-needed",
            ["numpy"],
        )
        assert notebook.alive
        assert (
            notebook.run("import numpy; print(numpy.__version__)").text.strip() == before["numpy"]
        ), "the kernel still has the old one"
        assert notebook.run(0).ended == "error", "and asks again as long as it was not restarted"

        notebook.restart()
        assert [one.ended for one in notebook.run_all()] == ["ok"] * len(notebook.code)
        assert machine.status["outcome"] == "verified"
        assert notebook.run("import numpy; print(numpy.__version__)").text.strip() == "2.1.3"

        folder = machine.base / str(machine.status["payload"])[:12]
        assert (
            notebook.run(f"import provision_cell; provision_cell.rollback({str(folder)!r})").ended
            == "ok"
        )
        assert machine.versions() == before, "restored"


@pytest.mark.long
def test_the_cell_restarts_the_kernel_itself_where_one_chose_that(
    render: Callable[..., Rendered], machine: Machine, tmp_path: Path
) -> None:
    made = render(LIGHT.replace("[numpy,", "[numpy==2.1.3,"), "newer-numpy")
    made = made.edited(
        tmp_path / "edited",
        lambda text: text.replace("RESTART_WHEN_NEEDED = False", "RESTART_WHEN_NEEDED = True"),
    )
    with Notebook(machine, made.notebook) as notebook:
        assert [one.ended for one in notebook.run_all()] == ["died"]
        assert machine.status["outcome"] == "restart-needed"
        notebook.restart()
        assert [one.ended for one in notebook.run_all()] == ["ok"] * len(notebook.code)
        assert machine.status["outcome"] == "verified"


@pytest.mark.long
def test_what_lies_about_in_the_variables_decides_nothing(
    light: Rendered, machine: Machine
) -> None:
    nowhere = "/backend-container/containers/build.constraints"
    machine.variables.update(
        dict.fromkeys(
            (
                "UV_CONSTRAINT",
                "UV_BUILD_CONSTRAINT",
                "UV_OVERRIDE",
                "PIP_CONSTRAINT",
                "PIP_REQUIREMENT",
            ),
            nowhere,
        )
    )
    machine.variables.update(
        {
            "UV_INDEX_URL": "http://127.0.0.1:9/simple",
            "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
            "PIP_REQUIRE_VIRTUALENV": "1",
        }
    )
    with Notebook(machine, light.notebook) as notebook:
        assert notebook.run(0).ended == "ok"
    assert machine.status["outcome"] == "verified"


@pytest.mark.long
def test_the_marker_of_an_interpreter_that_others_manage_is_passed_over(
    light: Rendered, machine: Machine
) -> None:
    (machine.site.parent / "EXTERNALLY-MANAGED").write_text(
        "[externally-managed]\nError=not here\n"
    )
    with Notebook(machine, light.notebook) as notebook:
        ran = notebook.run(0)
        assert ran.ended == "ok", ran.text
    assert machine.status["outcome"] == "verified"


@pytest.mark.long
def test_without_uv_pip_installs_and_checks_the_hashes(
    light: Rendered, machine: Machine, tmp_path: Path
) -> None:
    (machine.folder / "tools/uv").unlink()
    machine.variables["UV_CACHE_DIR"] = str(machine.folder / "none")

    def without_uv(document: dict[str, object]) -> None:
        document["uv"] = None

    made = light.otherwise(tmp_path / "pip", without_uv)
    with Notebook(machine, made.notebook) as notebook:
        ran = notebook.run(0)
        assert ran.ended == "ok", ran.text
    assert (machine.status["outcome"], machine.status["counts"]["hash-checked"]) == ("verified", 1)


@pytest.mark.long
def test_an_environment_of_its_own_leaves_the_kernels_alone(
    render: Callable[..., Rendered], machine: Machine
) -> None:
    made = render(
        LIGHT.replace('runtime: "2025.07"}', 'runtime: "2025.07", isolation: venv}').replace(
            "[numpy,", "[numpy==2.1.3,"
        ),
        "apart",
    )
    before = packages(machine)
    (machine.content / "ask.py").write_text(
        "import sys, numpy, einops; print(numpy.__version__, sys.prefix)\n"
    )
    with Notebook(machine, made.notebook) as notebook:
        ran = notebook.run(0)
        assert ran.ended == "ok", ran.text
        assert machine.status["outcome"] == "verified"
        assert packages(machine) == before
        assert (
            notebook.run("import numpy; print(numpy.__version__)").text.strip()
            == machine.versions()["numpy"]
        )
        cell = next(cell for cell in notebook.code if "SCRIPT =" in cell.source)
        cell.source = cell.source.replace('SCRIPT = ""', 'SCRIPT = "ask.py"')
        told = notebook.run(notebook.code.index(cell))
        assert told.ended == "ok", told.text
        assert told.text.split()[0] == "2.1.3"
        assert str(machine.base) in told.text
