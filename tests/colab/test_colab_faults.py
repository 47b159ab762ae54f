"""What goes wrong on a runtime, each really done to it: every time the cell stops in words, nothing
is half installed, and the kernel goes on working.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.colab.conftest import LIGHT
from tests.colab_rig import smi
from tests.colab_rig.machine import Machine
from tests.colab_rig.notebook import Notebook, Ran
from tests.colab_rig.rendered import Rendered

pytestmark = pytest.mark.network
CUT = dict.fromkeys(
    ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"), "http://127.0.0.1:9"
)
SECRET = "canary-of-a-secret-4711"
Document = dict[str, Any]


@pytest.fixture
def stopped(machine: Machine) -> Callable[..., Ran]:
    """Run all of a notebook that is to stop at a stage, and see that nothing of it harmed the
    machine.
    """

    def run(made: Rendered, stage: str = "", *, outcome: str = "stopped") -> Ran:
        before = machine.versions()
        with Notebook(machine, made.notebook) as notebook:
            *_, ran = every = notebook.run_all()
            assert [one.ended for one in every] == ["error"], "no other cell is run"
            assert ran.error in ("StageError", "_ProvisionStopped")
            assert "Traceback" not in ran.text
            assert machine.versions() == before
            if stage:
                assert (machine.status["stage"], machine.status["outcome"]) == (stage, outcome), (
                    ran.text
                )
                assert machine.status["message"]
            assert not (machine.base / "report.json").exists()
            assert notebook.run("import numpy; print(numpy.arange(3).sum())").text.strip() == "3", (
                "the kernel goes on"
            )
        return ran

    return run


def pinned(document: Document, name: str) -> dict[str, Any]:
    (found,) = [one for one in document["install"]["packages"] if one["name"] == name]
    return dict(found)


def with_ipython_9(document: Document) -> None:
    """A lock that takes away from the kernel what it lives on; the hashes are not its own, nothing
    of it is ever fetched.
    """
    document["install"]["packages"].append(
        {
            "name": "ipython",
            "version": "9.0.0",
            "index": "pypi",
            "files": {"ipython-9.0.0-py3-none-any.whl": "0" * 64},
        }
    )


def asks_for(gpu: str, device: str) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        document["gpu"] = {"type": gpu, "device": device, "count": 1}
        with_ipython_9(document)  # what is let through stops at `compare`

    return change


# The machine


@pytest.mark.long(after=1)
@pytest.mark.parametrize("wanted", smi.CARDS)
def test_only_the_card_that_was_asked_for_will_do(
    light: Rendered, machine: Machine, tmp_path: Path, wanted: str
) -> None:
    made = light.otherwise(tmp_path / "gpu", asks_for(wanted, smi.CARDS[wanted].name))
    with Notebook(machine, made.notebook) as notebook:
        for name, card in [*smi.CARDS.items(), ("none", None)]:
            machine.put(card)
            ran = notebook.run(0)
            assert (ran.ended, machine.status["stage"]) == (
                "error",
                "compare" if name == wanted else "check",
            ), ran.text
            if name != wanted:
                assert (card.name if card else "no GPU") in ran.text
                assert "Runtime > Change runtime type" in ran.text
                assert ran.seconds < 10


@pytest.mark.long
def test_without_nvidia_smi_there_is_no_card(
    light: Rendered, stopped: Callable[..., Ran], tmp_path: Path
) -> None:
    ran = stopped(light.otherwise(tmp_path / "gpu", asks_for("T4", smi.T4.name)), "check")
    assert "no GPU" in ran.text
    assert "CONTINUE_ANYWAY" in ran.text


@pytest.mark.long
def test_who_continues_anyway_gets_past_the_card(
    light: Rendered, stopped: Callable[..., Ran], tmp_path: Path
) -> None:
    made = light.otherwise(tmp_path / "gpu", asks_for("T4", smi.T4.name))
    made = made.edited(
        tmp_path / "anyway",
        lambda text: text.replace("CONTINUE_ANYWAY = False", "CONTINUE_ANYWAY = True"),
    )
    stopped(made, "compare")


@pytest.mark.long
def test_memory_of_the_card_that_another_notebook_holds_is_told(
    light: Rendered, machine: Machine, stopped: Callable[..., Ran], tmp_path: Path
) -> None:
    machine.put(smi.Card(smi.T4.name, smi.T4.memory, "7.5", used=9000, users={"4242": 8900}))
    ran = stopped(light.otherwise(tmp_path / "gpu", asks_for("T4", smi.T4.name)), "compare")
    assert "8.8 GiB of GPU memory is already in use" in ran.text
    assert "4242" in ran.text


@pytest.mark.long
def test_a_driver_that_is_too_old_is_told_before_anything_is_installed(
    light: Rendered, machine: Machine, stopped: Callable[..., Ran], tmp_path: Path
) -> None:
    def change(document: Document) -> None:
        asks_for("T4", smi.T4.name)(document)
        document["driver_min"] = "570.26"

    machine.put(smi.Card(smi.T4.name, smi.T4.memory, "7.5", driver="535.104.05"))
    ran = stopped(light.otherwise(tmp_path / "gpu", change), "check")
    assert "535.104.05" in ran.text
    assert "570.26" in ran.text


@pytest.mark.long
def test_another_python_ends_it_whatever_one_chooses(
    light: Rendered, stopped: Callable[..., Ran], tmp_path: Path
) -> None:
    def change(document: Document) -> None:
        document["python"] = document["install"]["python_version"] = document["expectations"][
            "python"
        ]["version"] = "3.12"

    made = light.otherwise(tmp_path / "python", change)
    made = made.edited(
        tmp_path / "anyway",
        lambda text: text.replace("CONTINUE_ANYWAY = False", "CONTINUE_ANYWAY = True"),
    )
    ran = stopped(made, "check")
    assert re.search(r"Python 3\.11\.\d+.*3\.12", ran.text)


# The lock


def test_a_file_with_another_hash_is_not_installed(
    light: Rendered, stopped: Callable[..., Ran], tmp_path: Path
) -> None:
    def change(document: Document) -> None:
        (einops,) = [one for one in document["install"]["packages"] if one["name"] == "einops"]
        einops["files"] = dict.fromkeys(einops["files"], "0" * 64)

    ran = stopped(light.otherwise(tmp_path / "hash", change), "install")
    assert "does not match the lock" in ran.text


@pytest.mark.long
def test_a_package_of_the_image_is_never_called_hash_checked(
    light: Rendered, machine: Machine, tmp_path: Path
) -> None:
    def change(document: Document) -> None:
        (numpy,) = [one for one in document["install"]["packages"] if one["name"] == "numpy"]
        numpy["files"] = dict.fromkeys(numpy["files"], "0" * 64)

    with Notebook(machine, light.otherwise(tmp_path / "hash", change).notebook) as notebook:
        assert notebook.run(0).ended == "ok"
    assert machine.status["counts"] == {"hash-checked": 1, "preinstalled": 2, "reinstalled": 0}


@pytest.mark.long
def test_ipython_9_in_the_lock_is_refused(
    light: Rendered, stopped: Callable[..., Ran], tmp_path: Path
) -> None:
    ran = stopped(light.otherwise(tmp_path / "protected", with_ipython_9), "compare")
    assert "ipython 7.34.0 -> 9.0.0" in ran.text
    assert "isolation: venv" in ran.text


@pytest.mark.long
def test_where_no_list_names_it_the_canary_dies_and_ipython_comes_back(
    light: Rendered, render: Callable[..., Rendered], machine: Machine, tmp_path: Path
) -> None:
    apart = render(
        LIGHT.replace("[numpy, tqdm, einops]", "[ipython==9.0.0]").replace(
            '"2025.07"}', '"2025.07", isolation: venv}'
        ),
        "ipython-9",
    )

    def change(document: Document) -> None:
        document["protected"] = []
        document["install"]["packages"].append(pinned(apart.document, "ipython"))

    before = machine.versions()
    with Notebook(machine, light.otherwise(tmp_path / "canary", change).notebook) as notebook:
        *_, ran = every = notebook.run_all()
        assert [one.ended for one in every] == ["error"]
        assert machine.status["stage"] == "canary"
        assert "a new kernel would not start with these packages" in ran.text
        assert machine.versions() == before, "rolled back"
        notebook.restart()
        assert (
            notebook.run("import IPython; print(IPython.__version__)").text.strip() == "7.34.0"
        ), "a new kernel really comes up"


@pytest.mark.long
def test_a_damaged_package_of_the_image_is_installed_anew(
    light: Rendered, machine: Machine
) -> None:
    path = machine.site / "tqdm/__init__.py"
    whole = path.read_bytes()
    machine.replace(path, whole + b"import antigravity\n")
    with Notebook(machine, light.notebook) as notebook:
        ran = notebook.run(0)
        assert ran.ended == "ok", ran.text
    assert "tqdm" in ran.text
    assert machine.status["counts"] == {"hash-checked": 1, "preinstalled": 1, "reinstalled": 1}
    assert path.read_bytes() == whole


# The network and the disk


@pytest.mark.long
def test_without_network_it_stops_and_goes_on_when_it_is_back(
    light: Rendered, machine: Machine, stopped: Callable[..., Ran]
) -> None:
    network = dict(machine.variables)
    machine.variables.update({**CUT, "UV_CACHE_DIR": str(machine.folder / "empty")})
    ran = stopped(light, "install")
    assert "network" in ran.text
    machine.variables = network
    with Notebook(machine, light.notebook) as notebook:
        assert notebook.run(0).ended == "ok"


@pytest.mark.long
def test_a_folder_that_cannot_be_written_gives_way_to_another(
    light: Rendered, machine: Machine
) -> None:
    """A file stands where the folder would: whoever is root may write everywhere else."""
    machine.base.write_text("in the way\n")
    with Notebook(machine, light.notebook) as notebook:
        assert [one.ended for one in notebook.run_all()] == ["ok"] * len(notebook.code)
    status = json.loads((machine.folder / "home/.provision-colab/status.json").read_text())
    assert status["outcome"] == "verified"


# The cell's text


@pytest.mark.long
def test_a_cell_that_was_cut_short_changes_nothing(
    light: Rendered, machine: Machine, tmp_path: Path
) -> None:
    before = machine.versions()
    lines = len(light.cell.read_text().splitlines())
    with Notebook(machine) as notebook:
        for place in (lines // 4, lines // 2, lines - 60, lines - 12, lines - 1):
            made = light.edited(
                tmp_path / str(place),
                lambda text, place=place: "\n".join(text.splitlines()[:place]),
            )
            ran = notebook.run(made.cell.read_text())
            assert (ran.ended, ran.error in ("SyntaxError", "IndentationError")) in (
                ("error", True),
                ("ok", False),
            ), ran.text
            assert not machine.base.exists()
    with Notebook(machine, made.notebook) as notebook:
        every = notebook.run_all()
        assert [one.ended for one in every] == ["ok", "error"]
        assert "the environment is not set up on this runtime" in every[1].text, (
            "Run all does not go on to one's own code"
        )
    assert machine.versions() == before


@pytest.mark.long
def test_a_payload_that_was_edited_is_refused(
    light: Rendered, machine: Machine, stopped: Callable[..., Ran], tmp_path: Path
) -> None:
    first = light.about["payload"][3]
    swapped = first[:40] + ("0" if first[40] != "0" else "1") + first[41:]
    for name, edit in {
        "changed": lambda text: text.replace(first, swapped),
        "shorter": lambda text: text.replace(f'\n        "{first}",', ""),
        "digest": lambda text: text.replace(light.about["payload_sha256"], "0" * 64),
    }.items():
        made = light.edited(tmp_path / name, edit)
        assert made.cell.read_text() != light.cell.read_text()
        ran = stopped(made)
        assert "edited or is incomplete" in ran.text
        assert "provision render" in ran.text
        assert not machine.base.exists()


@pytest.mark.long
def test_files_that_were_edited_where_they_lie_are_refused_and_laid_out_anew(
    light: Rendered, machine: Machine
) -> None:
    with Notebook(machine, light.notebook) as notebook:
        assert notebook.run(0).ended == "ok"
        document = machine.base / str(machine.status["payload"])[:12] / "document.json"
        document.write_text(document.read_text().replace("light", "other"))
        ran = notebook.run(1)
        assert (ran.ended, "missing or were changed" in ran.text) == ("error", True)
        assert [one.ended for one in notebook.run_all()] == ["ok"] * len(notebook.code)


# What a spec says


@pytest.mark.long
def test_hostile_values_arrive_as_they_are_and_do_nothing(
    render: Callable[..., Rendered], machine: Machine
) -> None:
    values = {
        "QUOTES": "'; import os; os.system('touch PWNED') #",
        "TRIPLE": '"""\nimport os; os.system("touch PWNED")\n"""'.replace("\n", " "),
        "SHELL": "$(touch PWNED) `touch PWNED` ; touch PWNED",
        "MAGIC": "!touch PWNED",
        "CELL": "%%bash touch PWNED",
        "MARKUP": "</script><img src=x onerror=alert(1)>",
        "FORMS": "{{7*7}} ${PATH} %(name)s {0}",
        "PLACEHOLDER": '{"ABOUT": "HERE"}',
    }
    lines = "".join(f"  {name}: {json.dumps(value)}\n" for name, value in values.items())
    made = render(f"{LIGHT}env:\n{lines}", "hostile")
    assert not re.search(r"^\s*[!%]", made.cell.read_text(), re.MULTILINE)
    assert all(
        value not in made.cell.read_text() for value in values.values() if "ABOUT" not in value
    ), "they are in the payload"
    with Notebook(machine, made.notebook) as notebook:
        ran = notebook.run(0)
        assert ran.ended == "ok", ran.text
        told = notebook.run(
            f"import json, os; print(json.dumps({{name: os.environ.get(name) for name in "
            f"{sorted(values)!r}}}))"
        ).text
    assert json.loads(told) == values
    assert not list(machine.folder.rglob("PWNED"))


def test_a_secret_is_in_its_variable_and_nowhere_else(
    render: Callable[..., Rendered], machine: Machine
) -> None:
    made = render(f"{LIGHT}secrets:\n  HF_TOKEN: {{colab: HF_OF_MINE}}\n", "secret")
    machine.keep({"HF_OF_MINE": SECRET})
    with Notebook(machine, made.notebook) as notebook:
        every = notebook.run_all()
        assert [one.ended for one in every] == ["ok"] * len(notebook.code), every[-1].text
        assert (
            notebook.run(f"import os; print(os.environ['HF_TOKEN'] == {SECRET!r})").text.strip()
            == "True"
        )
        outputs = json.dumps([one.outputs for one in every])
    embedded = b"".join(
        base64.b64decode(text) for text in re.findall(r"base64,([A-Za-z0-9+/=]+)", outputs)
    )
    assert b'"verdict"' in embedded, "the report that is offered is looked at too"
    hidden = SECRET.encode()
    assert hidden not in outputs.encode() + embedded
    files = [
        path
        for folder in (machine.folder, machine.temporary)
        for path in folder.rglob("*")
        if path.is_file()
    ]
    holding = [
        path
        for path in files
        if not path.is_relative_to(machine.folder / "usr") and hidden in path.read_bytes()
    ]
    assert holding == [machine.folder / "secrets.json"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kept", "words"),
    [({}, "HF_OF_MINE"), ({"HF_OF_MINE": None}, "does not have access"), (None, "did not respond")],
)
def test_a_secret_that_is_not_to_be_had_is_named_with_the_way_to_it(
    render: Callable[..., Rendered],
    machine: Machine,
    kept: dict[str, str | None] | None,
    words: str,
) -> None:
    made = render(f"{LIGHT}secrets:\n  HF_TOKEN: {{colab: HF_OF_MINE}}\n", "secret")
    if kept is not None:
        machine.keep(kept)
    with Notebook(machine, made.notebook) as notebook:
        ran = notebook.run(0)
    assert ran.ended == "error"
    assert machine.status["outcome"] in ("failed", "unverified")
    assert words in ran.text
    assert "HF_TOKEN" in ran.text
