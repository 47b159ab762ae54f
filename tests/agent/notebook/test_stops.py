"""Every way in which a run can stop: it says what, why and how to go on, writes the status, and
leaves the runtime as it can be used.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import pytest

from provision.agent.notebook import StageError
from tests.agent.install.bench import copy_of_python
from tests.agent.notebook.bench import MINOR, Runtime
from tests.conda_rig import bundled_wheel
from tests.rig import make_index, make_wheel, served

ROOT = Path(__file__).parents[3]


def stops(
    runtime: Runtime,
    document: dict[str, Any],
    stage: str,
    *words: str,
    outcome: str = "stopped",
    **changes: str,
) -> str:
    done = runtime.start(runtime.lay_out(document), *words, **changes)
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("provision stopped: ")
    status = runtime.status
    assert (status["stage"], status["outcome"], status["report_sha256"]) == (stage, outcome, None)
    assert status["message"] in done.stderr
    assert status["hint"].splitlines()[0] in done.stderr
    return done.stderr


def test_a_notebook_shows_the_lines_and_no_traceback() -> None:
    stopped = StageError("no GPU", "nvidia-smi says\nNo devices", "choose T4\nor continue")
    told = [
        "provision stopped: no GPU",
        "  nvidia-smi says",
        "  No devices",
        "help: choose T4",
        "      or continue",
    ]
    assert stopped._render_traceback_() == told
    assert str(stopped).splitlines() == ["no GPU", *told[1:]]


def test_a_cell_that_runs_as_a_program_ends_with_the_lines_and_no_traceback(tmp_path: Path) -> None:
    cell = tmp_path / "cell.py"
    about = {"payload_urls": [], "payload": ["x"], "payload_sha256": "0", "make_again": "again"}
    text = (ROOT / "templates/colab-cell.py").read_text(encoding="utf-8")
    cell.write_text(text.replace('{"ABOUT": "HERE"}', repr(about)), encoding="utf-8")

    done = subprocess.run([sys.executable, str(cell)], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "its payload does not match its digest\n  nothing was changed" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_wrong_card_stops_before_anything_is_installed_unless_one_goes_on(
    runtime: Runtime,
) -> None:
    runtime.card("NVIDIA L4")
    gpu = {"type": "T4", "device": "Tesla T4", "count": 1}
    document = runtime.document("alpha==1.0", gpu=gpu)
    said = stops(runtime, document, "check")
    assert "the GPU is NVIDIA L4, but the spec requires T4 (Tesla T4)" in said
    assert "set CONTINUE_ANYWAY in the cell" in said
    assert not (runtime.packages / "alpha").exists()
    went = runtime.start(runtime.lay_out(document), "--continue-anyway")
    assert went.returncode == 0, went.stderr
    assert "continuing anyway, because CONTINUE_ANYWAY is set" in went.stdout


def test_another_python_stops_also_where_one_goes_on(runtime: Runtime) -> None:
    said = stops(
        runtime,
        runtime.document("alpha==1.0", python="3.99", install__python_version="3.99"),
        "check",
        "--continue-anyway",
    )
    assert "the packages are locked for 3.99" in said
    assert "CONTINUE_ANYWAY" not in said


def test_a_bogus_hash_installs_nothing(runtime: Runtime) -> None:
    document = runtime.document("alpha==1.0", "beta==1.0")
    document["install"]["packages"][0]["files"] = {"alpha-1.0-py3-none-any.whl": 64 * "0"}
    assert "a file on the index does not match the lock; nothing was installed" in stops(
        runtime, document, "install"
    )
    assert list(runtime.packages.glob("*.dist-info")) == []


def test_a_bogus_hash_of_what_is_there_already_is_never_called_checked(runtime: Runtime) -> None:
    runtime.bring("alpha==1.0")
    document = runtime.document("alpha==1.0")
    document["install"]["packages"][0]["files"] = {"alpha-1.0-py3-none-any.whl": 64 * "0"}
    assert runtime.start(runtime.lay_out(document)).returncode == 0
    assert runtime.status["counts"] == {"hash-checked": 0, "preinstalled": 1, "reinstalled": 0}


@pytest.mark.long
def test_a_file_that_was_changed_is_put_right_and_told(runtime: Runtime) -> None:
    runtime.bring("alpha==1.0", "beta==1.0")
    (runtime.packages / "beta/__init__.py").write_text("__version__ = '1.0'\nimport os  # added\n")
    done = runtime.start(runtime.lay_out(runtime.document("alpha==1.0", "beta==1.0")))
    assert "beta 1.0 is damaged and will be reinstalled" in done.stdout
    assert runtime.status["counts"] == {"hash-checked": 0, "preinstalled": 1, "reinstalled": 1}


def test_without_network_the_runtime_stays_as_it_was_and_the_next_run_goes_on(
    runtime: Runtime,
) -> None:
    with served(runtime.folder / "index") as address:
        document = runtime.document("alpha==1.0", install__indexes={"pypi": address})
    said = stops(runtime, document, "install", UV_HTTP_RETRIES="0")
    assert "help: the index cannot be reached: check the network, then run the cell again" in said
    assert list(runtime.packages.glob("*.dist-info")) == []


def test_variables_that_lie_about_decide_nothing(runtime: Runtime) -> None:
    lying = {
        "UV_CONSTRAINT": "/no/such.constraints",
        "UV_SYSTEM_PYTHON": "true",
        "PIP_INDEX_URL": "http://127.0.0.1:9",
        "UV_INDEX_URL": "http://127.0.0.1:9",
    }
    done = runtime.start(runtime.lay_out(runtime.document("alpha==1.0")), **lying)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(
    "deb_system" in sysconfig.get_scheme_names(),
    reason="a copy of Debian's own Python does not look in its own site-packages",
)
def test_the_interpreter_of_an_image_that_another_installer_owns_is_added_to(
    runtime: Runtime,
) -> None:
    shutil.rmtree(runtime.folder / "image")
    python = copy_of_python(runtime.folder / "image")
    (runtime.folder / "image/bin/python").symlink_to(python.name)
    shutil.unpack_archive(runtime.wheels["theirs==1.0"], runtime.packages, "zip")
    folder = runtime.lay_out(runtime.document("alpha==1.0"))
    for now in (1, 0):
        done = runtime.start(folder)
        assert done.returncode == 0, done.stderr + done.stdout
        assert runtime.status["installed_now"] == now
    assert "2 packages" not in done.stdout
    assert "; 1 not in the lock" in done.stdout
    assert (runtime.packages / "alpha").is_dir()
    assert (runtime.packages / "theirs").is_dir()


@pytest.mark.long
def test_pip_says_so_too_where_another_installer_owns_the_interpreter(runtime: Runtime) -> None:
    shutil.rmtree(runtime.folder / "image")
    python = copy_of_python(runtime.folder / "image")
    (runtime.folder / "image/bin/python").symlink_to(python.name)
    shutil.unpack_archive(bundled_wheel("pip"), runtime.packages, "zip")
    if shutil.which("uv", path="/usr/bin:/bin"):
        pytest.skip("the system has a uv of its own")
    done = runtime.start(
        runtime.lay_out(runtime.document("alpha==1.0", uv=None)),
        PATH=f"{runtime.folder}/bin:/usr/bin:/bin",
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert (runtime.packages / "alpha").is_dir()


@pytest.mark.long(after=2)
@pytest.mark.parametrize("member", ["document.json", "probe.pyz", "installer.pyz", "cell.pyz"])
def test_files_that_were_edited_or_cut_are_refused(runtime: Runtime, member: str) -> None:
    folder = runtime.lay_out(runtime.document("alpha==1.0"))
    whole = (folder / "cell.pyz").read_bytes()
    (folder / member).write_bytes((folder / member).read_bytes() + b" ")
    (runtime.folder / "cell.pyz").write_bytes(whole)
    done = runtime.popen([runtime.python, str(runtime.folder / "cell.pyz"), "start", str(folder)])
    assert done.returncode == 1
    assert "some of the files that this cell unpacked are missing or were changed" in done.stderr
    assert "writes its files again" in done.stderr
    (folder / member).unlink()
    assert (
        "cannot read"
        in runtime.popen(
            [runtime.python, str(runtime.folder / "cell.pyz"), "start", str(folder)]
        ).stderr
    )


def test_a_place_that_cannot_be_written_is_named(runtime: Runtime) -> None:
    folder = runtime.lay_out(runtime.document("alpha==1.0"))
    (runtime.base / "lock").mkdir()
    done = runtime.start(folder)
    assert f"cannot write to {runtime.base}" in done.stderr
    assert "PROVISION_CELL_BASE" in done.stderr
    (runtime.base / "lock").rmdir()
    (runtime.base / "status.json").mkdir()
    done = runtime.start(folder)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "failed to read or write a file" in done.stderr


@pytest.mark.long
def test_two_notebooks_of_one_runtime_take_turns(runtime: Runtime) -> None:
    folder = runtime.lay_out(runtime.document("alpha==1.0"))
    hold = (
        "import fcntl, sys, time; file = open(sys.argv[1], 'a'); fcntl.flock(file, "
        "fcntl.LOCK_EX); print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(runtime.base / "lock")], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        done = runtime.start(folder)
        holder.kill()
    assert "another cell is already running on this runtime" in done.stderr
    assert runtime.start(folder).returncode == 0


def test_ctrl_c_ends_what_was_started_and_the_next_run_goes_on(runtime: Runtime) -> None:
    runtime.program(
        "uv",
        f'case "$1" in --version) echo "uv 0.13.9";; *) echo $$ > {runtime.folder}/uv.pid; '
        "exec sleep 60;; esac",
    )
    folder = runtime.lay_out(runtime.document("alpha==1.0"))
    with subprocess.Popen(
        [runtime.python, str(folder / "cell.pyz"), "start", str(folder)],
        env=runtime.environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        ends = time.monotonic() + 300
        pid = runtime.folder / "uv.pid"
        while not (pid.exists() and pid.read_text()):
            assert time.monotonic() < ends
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=600)
    assert said.startswith("provision stopped: interrupted in stage install")
    assert (runtime.status["outcome"], runtime.status["stage"]) == ("interrupted", "install")
    stat = Path(f"/proc/{pid.read_text().strip()}/stat")
    assert not stat.exists() or ") Z " in stat.read_text()
    (runtime.folder / "bin/uv").unlink()
    assert runtime.start(folder).returncode == 0


def test_a_failed_proof_names_what_to_do_and_continue_anyway_goes_on(runtime: Runtime) -> None:
    broken = make_wheel(
        runtime.folder / "wheels", "omega", "1.0", code="raise RuntimeError('no')\n"
    )
    runtime.wheels["omega==1.0"] = broken
    runtime.index = make_index(runtime.folder / "index", tuple(runtime.wheels.values()))
    folder = runtime.lay_out(runtime.document("omega==1.0"))
    done = runtime.start(folder)
    assert (done.returncode, runtime.status["outcome"], runtime.status["stage"]) == (
        1,
        "failed",
        "report",
    )
    assert "P06:omega" in done.stdout
    assert runtime.report["verdict"]["result"] == "failed"
    assert runtime.start(folder, "--continue-anyway").returncode == 0
    assert "stored report" not in runtime.start(folder).stdout, (
        "only a proof that holds is shown again"
    )


@pytest.mark.long
def test_a_package_that_was_changed_after_the_proof_is_proven_anew(runtime: Runtime) -> None:
    runtime.bring("gamma==1.0")
    folder = runtime.lay_out(runtime.document("gamma==2.0"))
    assert runtime.start(folder).returncode == 0
    runtime.bring("gamma==1.0")
    done = runtime.start(folder)
    assert done.returncode == 0, done.stderr
    assert "1 changed" in done.stdout
    assert "stored report" not in done.stdout
    runtime.bring("gamma==1.0")
    verified = runtime.start(folder, verb="verify")
    assert "installed packages do not match the lock: gamma (1 in total)" in verified.stderr


@pytest.mark.long
def test_a_stored_report_that_was_edited_is_not_shown(runtime: Runtime) -> None:
    folder = runtime.lay_out(runtime.document("alpha==1.0"))
    assert runtime.start(folder).returncode == 0
    stored = json.loads((folder / "report.json").read_text())
    stored["verdict"]["sentence"] = "forged"
    (folder / "report.json").write_text(json.dumps(stored))
    done = runtime.start(folder)
    assert "forged" not in done.stdout
    assert "stored report" not in done.stdout
    assert "stored report" in runtime.start(folder, verb="verify").stdout
    assert "stored report" not in runtime.start(folder, "--again", verb="verify").stdout


def test_what_moved_since_the_catalogue_is_told_and_written_down(runtime: Runtime) -> None:
    listed = {
        "version": "2026.07",
        "as_of": "2026-11-20",
        "python": f"{MINOR}.99",
        "torch": "2.11.0",
        "flavour": "cu128",
        "os": "Ubuntu 9",
        "driver": None,
    }
    done = runtime.start(runtime.lay_out(runtime.document("alpha==1.0", runtime=listed)))
    assert f"expected {MINOR}.99 (as of 2026-11-20)" in done.stdout
    assert [one["what"] for one in runtime.status["moved"]] == ["Python", "the system"]


def test_paths_are_made_and_variables_reach_the_kernel(runtime: Runtime) -> None:
    data = runtime.folder / "data/deep"
    document = runtime.document(
        "alpha==1.0", paths={"data": str(data), "out": "/proc/no"}, env={"A": "$HOME; `id`"}
    )
    code = (
        "provision_cell.start(FOLDER)\nimport os\nprint(os.environ['A'], "
        "os.environ['PROVISION_PATH_DATA'])"
    )
    done = runtime.cell(runtime.lay_out(document), code)
    assert done.stdout.endswith(f"$HOME; `id` {data}\n"), done.stderr
    assert "cannot use the folder /proc/no (paths.out)" in done.stdout
    assert data.is_dir()
