"""In a kernel: restarts only for what is stale, a dead canary puts the packages back, secrets stay
where they belong.
"""

from __future__ import annotations

import json

import pytest

from tests.agent.notebook.bench import Runtime
from tests.rig import make_index, make_wheel

LOAD = "import gamma"


def test_a_package_that_was_loaded_when_it_was_changed_asks_for_a_restart_until_there_is_one(
    runtime: Runtime,
) -> None:
    runtime.in_kernel()
    runtime.bring("gamma==1.0", "alpha==1.0")
    folder = runtime.lay_out(runtime.document("gamma==2.0", "alpha==1.0", "beta==1.0"))
    code = (
        "try:\n    provision_cell.start(FOLDER)\nexcept provision_cell.StageError:\n    "
        "provision_cell.start(FOLDER)"
    )
    done = runtime.cell(folder, code, before="import gamma, alpha, IPython")
    assert done.returncode == 1
    assert "a new kernel would start" in done.stdout
    assert "StageError: this kernel has loaded versions of gamma" in done.stderr
    assert done.stdout.count("nothing to install") == 1, (
        "the second run in the same kernel still asks for the restart"
    )
    status = runtime.status
    assert (status["outcome"], status["stage"], status["restart"]) == (
        "restart-needed",
        "restart",
        ["gamma"],
    )
    assert status["report_sha256"] is None
    assert not (runtime.base / "report.json").exists()
    again = runtime.cell(folder, before="import gamma, alpha, IPython")
    assert again.returncode == 0, again.stderr
    assert runtime.status["outcome"] == "verified"


def test_what_nothing_has_loaded_needs_no_restart(runtime: Runtime) -> None:
    runtime.in_kernel()
    runtime.bring("gamma==1.0")
    done = runtime.cell(runtime.lay_out(runtime.document("gamma==2.0")), before="import IPython")
    assert done.returncode == 0, done.stderr
    assert "restart     not needed" in done.stdout
    assert "SHUTDOWN" not in done.stdout


def test_a_package_that_someone_else_changed_in_this_kernel_is_stale_too(runtime: Runtime) -> None:
    runtime.in_kernel()
    runtime.bring("gamma==1.0")
    wheel, target = runtime.wheels["gamma==2.0"], runtime.packages
    change = "import shutil, subprocess, zipfile, IPython, gamma, time, glob\ntime.sleep(1.5)\n"
    change += (
        f"[shutil.rmtree(one) for one in glob.glob({str(target)!r} + "
        f"'/gamma*')]\nzipfile.ZipFile({str(wheel)!r}).extractall({str(target)!r})"
    )
    done = runtime.cell(runtime.lay_out(runtime.document("gamma==2.0")), before=change)
    assert "loaded versions of gamma" in done.stderr, done.stdout
    assert runtime.status["restart"] == ["gamma"]


def test_colab_shows_its_button_and_a_chosen_restart_comes_after_the_status(
    runtime: Runtime,
) -> None:
    runtime.in_colab()
    runtime.bring("gamma==1.0")
    done = runtime.cell(
        runtime.lay_out(runtime.document("gamma==2.0")),
        before="import gamma, IPython, google.colab",
    )
    (bundle,) = [
        json.loads(line.removeprefix("BUNDLE "))
        for line in done.stdout.splitlines()
        if line.startswith("BUNDLE ")
    ]
    assert bundle["application/vnd.colab-display-data+json"]["pip_warning"] == {
        "packages": ["gamma"]
    }
    assert "SHUTDOWN" not in done.stdout
    runtime.bring("gamma==1.0")
    folder = runtime.lay_out(runtime.document("gamma==2.0", env={"A": "b"}))
    done = runtime.cell(
        folder,
        "provision_cell.start(FOLDER, restart=True)",
        before="import gamma, IPython, google.colab",
    )
    assert done.stdout.endswith("SHUTDOWN True\n")
    assert runtime.status["outcome"] == "restart-needed"


def test_a_kernel_that_would_not_come_up_gets_its_packages_back_and_is_never_restarted(
    runtime: Runtime,
) -> None:
    runtime.in_kernel()
    runtime.bring("gamma==1.0", "theirs==1.0")
    document = runtime.document("ipykernel==2.0", "gamma==2.0", "beta==1.0", protected=[])
    done = runtime.cell(
        runtime.lay_out(document),
        "provision_cell.start(FOLDER, restart=True)",
        before="import IPython, gamma",
    )
    assert done.returncode == 1
    assert "traitlets is too old for this ipykernel" in done.stderr
    assert "SHUTDOWN" not in done.stdout
    assert (runtime.status["outcome"], runtime.status["stage"]) == ("error", "canary")
    names = sorted(path.name for path in runtime.packages.glob("*.dist-info"))
    assert names == ["gamma-1.0.dist-info", "ipykernel-1.0.dist-info", "theirs-1.0.dist-info"]
    assert "__version__ = '1.0'" in (runtime.packages / "gamma/__init__.py").read_text()
    assert runtime.cell(runtime.lay_out(runtime.document("gamma==2.0"))).returncode == 0, (
        "the runtime can be used"
    )


@pytest.mark.long
def test_a_kernel_that_someone_else_broke_later_is_not_ours_to_roll_back(runtime: Runtime) -> None:
    runtime.in_kernel()
    folder = runtime.lay_out(runtime.document("gamma==2.0"))
    assert runtime.cell(folder, before="import IPython").returncode == 0
    runtime.bring("ipykernel==2.0")
    done = runtime.cell(folder, before="import IPython")
    assert (
        "something else has changed since" in str(done.stderr)
        or "could not start a new kernel" in done.stderr
    )
    assert (runtime.packages / "gamma").is_dir()


def test_what_the_kernel_lives_on_is_refused_before_anything_is_installed(runtime: Runtime) -> None:
    runtime.in_kernel()
    done = runtime.cell(
        runtime.lay_out(runtime.document("ipykernel==2.0", "beta==1.0")), before="import IPython"
    )
    assert done.returncode == 1
    assert (
        "the lock would change packages that the kernel needs: ipykernel 1.0 -> 2.0" in done.stderr
    )
    assert (runtime.status["stage"], runtime.status["outcome"]) == ("compare", "stopped")
    assert "isolation: venv" in runtime.status["hint"]
    assert not (runtime.packages / "beta").exists()
    foreseen = runtime.document("ipykernel==1.0", "beta==1.0")
    assert runtime.cell(runtime.lay_out(foreseen), before="import IPython").returncode == 0, (
        "in its version it may be locked"
    )


def test_secrets_come_from_colabs_store_into_variables_and_nowhere_else(runtime: Runtime) -> None:
    runtime.in_colab()
    document = runtime.document(
        "alpha==1.0", secrets={"HF_TOKEN": "OPEN"}, expectations__secrets=["HF_TOKEN"]
    )
    code = (
        "provision_cell.start(FOLDER)\nimport os\nprint(os.environ['HF_TOKEN'] == 's3cret-value')"
    )
    done = runtime.cell(runtime.lay_out(document), code, before="import google.colab, IPython")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("True\n")
    assert "s3cret" not in done.stdout + done.stderr
    for path in runtime.base.rglob("*"):
        assert not path.is_file() or b"s3cret" not in path.read_bytes(), path


def test_a_missing_secret_says_what_to_do_and_the_proof_fails(runtime: Runtime) -> None:
    runtime.in_colab()
    secrets = {"A_TOKEN": "CLOSED", "B_TOKEN": "ABSENT", "C_TOKEN": "ABSENT"}
    document = runtime.document(
        "alpha==1.0", secrets=secrets, expectations__secrets=["A_TOKEN", "B_TOKEN", "C_TOKEN"]
    )
    done = runtime.cell(
        runtime.lay_out(document), before="import google.colab, IPython", C_TOKEN="set by hand"
    )
    assert "the secret A_TOKEN is missing: this notebook does not have access to it" in done.stdout
    assert (
        "the secret B_TOKEN is missing: it is not in Colab's secret store "
        "(SecretNotFoundError): add ABSENT" in done.stdout
    )
    assert "1 of 3 secrets" in done.stdout
    assert done.returncode == 1
    assert runtime.status["outcome"] == "failed"
    assert "not set: A_TOKEN, B_TOKEN" in runtime.status["message"]
    plain = runtime.cell(
        runtime.lay_out({**document, "nonce": document["nonce"]}),
        "provision_cell.verify(FOLDER, continue_anyway=True)",
    )
    assert plain.returncode == 0


def test_a_store_that_does_not_answer_is_not_waited_for(runtime: Runtime) -> None:
    runtime.in_colab()
    folder = runtime.lay_out(runtime.document("alpha==1.0"))
    code = (
        "from provision_cell.notebook.kernel import SecretUnavailable, read_colab_secret\n"
        "try:\n    read_colab_secret('SLOW', 0.3)\n"
        "except SecretUnavailable as error:\n    print(error)"
    )
    assert "Colab's secret store did not respond" in runtime.cell(folder, code).stdout


def test_what_stops_a_run_shows_no_secret(runtime: Runtime) -> None:
    runtime.in_colab()
    runtime.wheels["omega==1.0"] = make_wheel(
        runtime.folder / "wheels",
        "omega",
        "1.0",
        code="import os\nraise RuntimeError(os.environ['HF_TOKEN'])\n",
    )
    runtime.index = make_index(runtime.folder / "index", tuple(runtime.wheels.values()))
    document = runtime.document(
        "omega==1.0", secrets={"HF_TOKEN": "OPEN"}, expectations__secrets=["HF_TOKEN"]
    )
    done = runtime.cell(runtime.lay_out(document), before="import google.colab, IPython")
    assert runtime.status["outcome"] == "failed"
    assert "s3cret" not in done.stdout + done.stderr + json.dumps(runtime.status) + json.dumps(
        runtime.report
    )


def test_rollback_brings_the_runtime_back(runtime: Runtime) -> None:
    runtime.in_kernel()
    runtime.bring("gamma==1.0", "theirs==1.0")
    before = {
        path: path.read_bytes()
        for path in runtime.packages.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    folder = runtime.lay_out(runtime.document("gamma==2.0", "beta==1.0"))
    assert runtime.cell(folder, before="import IPython").returncode == 0
    done = runtime.cell(folder, "provision_cell.rollback(FOLDER)")
    assert "restored 2 packages: beta, gamma" in done.stdout
    assert {
        path: path.read_bytes()
        for path in runtime.packages.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    } == before
    assert "run the first cell" in runtime.start(folder, verb="verify").stderr
