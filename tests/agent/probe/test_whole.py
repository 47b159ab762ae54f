"""The shipped probe in small real environments: what it says of good ones, broken ones, and of
packages that crash.
"""

from __future__ import annotations

import io
import json
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.report_json import canonical_digest, to_canonical_json
from provision.verification import Report
from provision.verification.device_files import probe_digest, probe_zipapp
from tests.agent.probe.bench import Environment, checks, clean_environ, write_package

KILLED = "import os, signal\nos.kill(os.getpid(), signal.{name})\n"
SECRET = "s3cr3t-v4lue/with+signs"


def test_a_good_environment_is_verified_and_says_what_was_not_proved(
    environment: Environment,
) -> None:
    code, report, said = environment.add("alpha").add("beta", requires="alpha>=1").verify()
    assert (code, report["verdict"]["result"]) == (0, "verified")
    assert report["verdict"]["counts"]["fail"] == report["verdict"]["counts"]["unknown"] == 0
    assert report["subject"]["proof"] == "imports"
    assert "no training was run (proof: imports)" in report["verdict"]["sentence"]
    assert report["packages"] == {
        "locked": 2,
        "matching": 2,
        "differences": [],
        "installed": {"alpha": "1.0", "beta": "1.0"},
    }
    listed = canonical_digest(report["packages"]["installed"])
    assert Report(report).values["packages.digest"] == listed
    assert [stage["name"] for stage in report["stages"]] == ["host", "packages", "imports"]
    assert all(stage["exit"] == 0 and not stage["timed_out"] for stage in report["stages"])
    assert checks(report)["T01"]["status"] == "skip"
    assert said.splitlines()[-1].startswith("verified: ")


def test_the_report_is_canonical_small_and_carries_its_own_digest(environment: Environment) -> None:
    environment.add("alpha").verify()
    text = (environment.root / "report.json").read_text(encoding="utf-8")
    report = json.loads(text)
    assert text == to_canonical_json(report) + "\n"
    assert len(text) < 20_000
    claimed = report.pop("digests")
    assert claimed["report"] == canonical_digest(report)
    assert claimed["identity"] == canonical_digest(report["readings"]["identity"])
    assert set(report) == {
        "schema",
        "tool",
        "subject",
        "spec",
        "lock",
        "tier",
        "readings",
        "checks",
        "stages",
        "packages",
        "verdict",
    }
    assert len(report["tool"]["probe_sha256"]) == 64


def test_packed_and_unpacked_it_is_the_same_program(environment: Environment) -> None:
    folder = environment.root / "unpacked"
    with zipfile.ZipFile(io.BytesIO(probe_zipapp())) as archive:
        archive.extractall(folder)
    _, packed, _ = environment.add("alpha").verify()
    code, unpacked, _ = replace(environment, probe=folder).verify()
    assert code == 0
    assert packed["tool"]["probe_sha256"] == unpacked["tool"]["probe_sha256"] == probe_digest()
    assert packed["digests"]["identity"] == unpacked["digests"]["identity"]
    with (folder / "provision_probe/probe/report.py").open("a") as file:
        file.write("# edited\n")
    _, edited, _ = replace(environment, probe=folder).verify()
    assert edited["tool"]["probe_sha256"] != probe_digest()


def test_identity_is_stable_and_moves_with_a_package(environment: Environment) -> None:
    _, first, _ = environment.add("alpha").verify()
    _, second, _ = environment.verify(
        nonce="another-nonce", environ={"CUDA_LAUNCH_BLOCKING": "1", "LANG": "C"}
    )
    _, third, _ = environment.add("beta").verify()
    assert first["digests"]["identity"] == second["digests"]["identity"]
    assert first["digests"]["report"] != second["digests"]["report"]
    assert first["digests"]["identity"] != third["digests"]["identity"]


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (KILLED.format(name="SIGSEGV"), "SIGSEGV"),
        (KILLED.format(name="SIGKILL"), "SIGKILL"),
        (KILLED.format(name="SIGBUS"), "SIGBUS"),
        ("import ctypes\nctypes.string_at(0)\n", "SIGSEGV"),
        ("import os\nos._exit(0)\n", "exit code 0"),
        ("import sys\nsys.exit('no licence')\n", "SystemExit: no licence"),
        ("raise OSError('libfoo.so.1: cannot open shared object file')\n", "libfoo.so.1"),
    ],
)
def test_a_package_that_dies_on_import_is_named(
    environment: Environment, code: str, cause: str
) -> None:
    exit_code, report, _ = environment.add("alpha").add("beta", code).add("gamma").verify()
    found = checks(report)
    assert exit_code == 1
    assert found["P06:alpha"]["status"] == "pass"
    assert found["P06:beta"]["status"] == "fail"
    assert cause in found["P06:beta"]["message"]
    assert report["verdict"]["first_cause"] == "P06:beta"
    # After an exception the next package is still looked at; after a death it cannot be, and that
    # is not a pass.
    assert found["P06:gamma"]["status"] == (
        "pass" if code.startswith(("raise", "import sys")) else "unknown"
    )


def test_a_package_that_hangs_runs_into_the_time_limit_with_its_children(
    environment: Environment, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    code = (
        "import subprocess, time\nchild = subprocess.Popen(['sleep', "
        f"'300'])\nopen({str(pid_file)!r}, 'w').write(str(child.pid))\n"
    )
    code += "print('before the hang', flush=True)\ntime.sleep(300)\n"
    began = time.monotonic()
    exit_code, report, _ = environment.add("beta", code).verify(timeout_s=4)
    assert time.monotonic() - began < 30
    assert exit_code == 1
    assert "did not end within" in checks(report)["P06:beta"]["message"]
    stage = report["stages"][-1]
    assert (stage["timed_out"], stage["signal"]) == (True, "SIGKILL")
    assert "before the hang" in stage["tail"]
    assert not alive(int(pid_file.read_text()))


def test_after_a_death_the_next_stages_run_in_a_new_process(environment: Environment) -> None:
    exit_code, report, _ = environment.add("torch", KILLED.format(name="SIGSEGV")).verify()
    found = checks(report)
    assert exit_code == 1
    assert {
        stage["name"]: stage["signal"] for stage in report["stages"] if stage["signal"]
    } == dict.fromkeys(("torch", "loaders", "training", "imports"), "SIGSEGV")
    assert [found[name]["status"] for name in ("T01", "N01", "L01", "R01", "R02", "R05")] == [
        "fail",
        "unknown",
        "warn",
        "fail",
        "unknown",
        "unknown",
    ]
    assert report["verdict"]["first_cause"] == "P06:torch"


def test_one_stage_by_itself_writes_its_fragment(environment: Environment, tmp_path: Path) -> None:
    environment.add("alpha").verify()
    fragment = tmp_path / "fragment.json"
    command = [
        environment.python,
        str(environment.probe),
        "stage",
        "packages",
        "--expectations",
        str(environment.root / "expectations.json"),
    ]
    done = subprocess.run(
        [*command, "--out", str(fragment), "--scratch", str(tmp_path)],
        env=clean_environ(),
        check=False,
    )
    assert done.returncode == 0
    found = json.loads(fragment.read_text(encoding="utf-8"))
    assert found["done"] == ["P01", "P02", "P03", "P04", "P07"]
    assert found["seen"]["package.alpha"] == "1.0"


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("changes", "failing", "says"),
    [
        (
            {"packages": [{"name": "alpha", "version": "1.0+cu130"}]},
            "P02",
            "alpha 1.0, locked 1.0+cu130",
        ),
        (
            {"packages": [{"name": "alpha", "version": "1.0"}, {"name": "gone", "version": "2"}]},
            "P02",
            "gone is not installed",
        ),
        ({"python": {"version": "3.9", "prefix": "/elsewhere"}}, "P01", "the lock is for 3.9"),
        (
            {"python": {"version": f"3.{sys.version_info.minor}", "prefix": "/elsewhere"}},
            "P01",
            "instead of the environment's Python",
        ),
        ({"paths": {"data": "/proc"}}, "W01", "data (/proc) is not writable"),
        ({"paths": {"data": "/no/such/folder"}}, "W01", "is absent"),
        ({"env": {"MODE": "train"}}, "E02", "MODE is not set"),
        ({"secrets": ["NEVER_SET_TOKEN"]}, "Y01", "NEVER_SET_TOKEN"),
        ({"platform": "macos-arm64"}, "H01", "the lock is for macos-arm64"),
        ({"glibc_min": "9.99"}, "H02", "9.99"),
    ],
)
def test_an_environment_that_is_not_the_declared_one_fails(
    environment: Environment, changes: dict[str, Any], failing: str, says: str
) -> None:
    exit_code, report, said = environment.add("alpha").verify(**changes)
    assert exit_code == 1
    assert checks(report)[failing]["status"] == "fail"
    assert says in checks(report)[failing]["message"]
    assert report["verdict"]["result"] == "failed"
    assert f"{failing}: " in said.splitlines()[-1]


def test_unmet_requirements_of_packages_fail(environment: Environment) -> None:
    environment.add("alpha", requires="beta[fast]>=2; python_version >= '3.8'").add(
        "beta", requires="gone; extra == 'fast'", version="1.5"
    )
    exit_code, report, _ = environment.verify()
    message = checks(report)["P04"]["message"]
    assert exit_code == 1
    assert "alpha 1.0 needs beta>=2, but 1.5 is installed" in message
    assert "beta 1.5 needs gone, which is not installed" in message


def test_a_requirement_that_cannot_be_read_is_unverified_and_never_green(
    environment: Environment,
) -> None:
    exit_code, report, _ = environment.add("alpha", requires="beta; colour == 'red'").verify()
    assert exit_code == 3
    assert (report["verdict"]["result"], report["verdict"]["first_cause"]) == ("unverified", "P04")


def test_a_module_before_the_environment_on_the_path_fails(
    environment: Environment, tmp_path: Path
) -> None:
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow" / "alpha.py").write_text("", encoding="utf-8")
    (tmp_path / "shadow" / "unrelated.py").write_text("", encoding="utf-8")
    exit_code, report, _ = environment.add("alpha").verify(
        environ={"PYTHONPATH": str(tmp_path / "shadow")}
    )
    check = checks(report)["P03"]
    assert exit_code == 1
    assert check["status"] == "fail"
    assert "alpha from" in check["message"]
    assert "unrelated" not in check["message"]
    assert checks(report)["E01"]["status"] == "warn"


def test_a_standard_library_module_that_is_replaced_fails(
    environment: Environment, tmp_path: Path
) -> None:
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow" / "wave.py").write_text("", encoding="utf-8")
    _, report, _ = environment.add("alpha").verify(environ={"PYTHONPATH": str(tmp_path / "shadow")})
    assert "wave from" in checks(report)["P03"]["message"]


def test_a_locked_package_that_comes_from_elsewhere_fails(
    environment: Environment, tmp_path: Path
) -> None:
    write_package(tmp_path / "other", "alpha", "", "1.0")
    environment.packages["alpha"] = "1.0"
    exit_code, report, _ = environment.verify(environ={"PYTHONPATH": str(tmp_path / "other")})
    assert exit_code == 1
    assert "installed outside the environment: alpha" in checks(report)["P03"]["message"]


def test_what_is_not_locked_is_a_warning_unless_the_manager_brings_it(
    environment: Environment,
) -> None:
    environment.add("alpha").add("pip", version="26.0")
    locked = [{"name": "alpha", "version": "1.0"}]
    code, report, _ = environment.verify(packages=locked, direct=["alpha"])
    assert (code, checks(report)["P03"]["status"]) == (0, "warn")
    code, report, _ = environment.verify(packages=locked, direct=["alpha"], extras_allowed=["pip"])
    assert (code, checks(report)["P03"]["status"]) == (0, "pass")


def test_what_condas_locked_files_brought_is_compared_with_what_they_brought(
    environment: Environment,
) -> None:
    environment.add("alpha").add("beta", version="1.0.post1")
    asked: dict[str, Any] = {
        "packages": [{"name": "alpha", "version": "1.0"}],
        "direct": ["alpha"],
        "conda": ["beta-base-1.0-h0_0"],
    }
    note = {
        "beta": {"version": "1.0.post1", "conda": "beta-base-1.0-h0_0"},
        "alpha": {"version": "1.0"},
        "odd": [],
        "gone": {"conda": []},
    }
    noted = environment.root / "installed.json"
    noted.write_text(json.dumps({"packages": note}))
    _, report, _ = environment.verify(**asked)
    assert [checks(report)[check]["status"] for check in ("P02", "P03", "P07")] == [
        "pass",
        "pass",
        "pass",
    ]
    assert (
        checks(report)["P02"]["message"]
        == "all 1 locked packages are installed at their locked versions; 1 more conda "
        "packages match their locked files"
    )
    assert report["packages"]["locked"] == 1
    identity = report["digests"]["identity"]
    noted.write_text(json.dumps({"packages": {**note, "beta": {**note["beta"], "version": "1.0"}}}))
    code, report, _ = environment.verify(**asked)
    assert (code, checks(report)["P02"]["status"]) == (1, "fail")
    assert (
        "1 conda packages differ: beta 1.0.post1, locked conda file has 1.0"
        in checks(report)["P02"]["message"]
    )
    assert report["packages"]["differences"] == [
        {"name": "beta", "expected": "1.0", "observed": "1.0.post1"}
    ]
    assert report["digests"]["identity"] == identity, (
        "other targets do without what conda brings besides"
    )
    noted.write_text(
        json.dumps(
            {"packages": {**note, "gone": {"version": "2.0", "conda": "beta-base-1.0-h0_0"}}}
        )
    )
    assert (
        "gone is not installed, locked conda file has 2.0"
        in checks(environment.verify(**asked)[1])["P02"]["message"]
    )
    noted.write_text(
        json.dumps({"packages": {**note, "beta": {**note["beta"], "conda": "beta-base-2.0-h0_0"}}})
    )
    _, report, _ = environment.verify(**asked)
    assert "beta 1.0.post1" in checks(report)["P03"]["message"], (
        "a file that is not locked brings nothing that is"
    )
    assert checks(report)["P02"]["message"].endswith(
        "; other conda packages were not recorded and are not compared"
    )


def test_nothing_private_reaches_the_report_or_the_terminal(
    environment: Environment, tmp_path: Path
) -> None:
    home = tmp_path / "home-of-someone"
    home.mkdir()
    token = "hf_" + "A1b2C3d4" * 4
    leaks = [
        SECRET,
        token,
        "ghp_" + "x" * 36,
        "AIza" + "y" * 35,
        "wandb_key=" + "0a" * 20,
        f"{home}/models",
        socket.gethostname(),
        "zelda.fitz",
        "zelda@example.org",
    ]
    code = (
        f"import os, signal\nprint({leaks!r}, flush=True)\nprint({SECRET!r} * 400, "
        f"flush=True)\nraise RuntimeError(' '.join({leaks!r}))\n"
    )
    crash = (
        f"import os, signal\nprint({leaks!r}, flush=True)\nos.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    environ = {
        "HOME": str(home),
        "MY_TOKEN": SECRET,
        "LOGNAME": "zelda.fitz",
        "LD_LIBRARY_PATH": f"{home}/lib:/{SECRET}",
    }
    _, _, said = (
        environment.add("alpha", code)
        .add("beta", crash)
        .verify(
            "--events",
            environ=environ,
            secrets=["MY_TOKEN"],
            paths={"home": str(home)},
            env={"MY_TOKEN": SECRET},
        )
    )
    text = (environment.root / "report.json").read_text(encoding="utf-8") + said
    private = [SECRET, token, "ghp_xxxx", "AIzayyyy", "0a0a0a", str(home), "zelda"]
    if len(socket.gethostname()) > 2 and socket.gethostname() != "localhost":
        private.append(socket.gethostname())
    assert [word for word in private if word in text] == []
    assert '"secret.MY_TOKEN":"set"' in text.replace(" ", "")
    assert "<redacted>" in text


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopping_kills_the_stage_and_leaves_no_report(
    environment: Environment, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    pid_file = tmp_path / "pid"
    environment.add(
        "alpha",
        f"import os, time\nname = {str(pid_file)!r}\nopen(name + '.tmp', "
        "'w').write(str(os.getpid()))\nos.rename(name + '.tmp', name)\ntime.sleep(300)\n",
    )
    process = environment.start()
    wait_for(pid_file.exists)
    process.send_signal(number)
    said, _ = process.communicate(timeout=600)
    assert process.returncode == code
    assert "Traceback" not in said
    assert not alive(int(pid_file.read_text()))
    assert not list(environment.root.glob("*report*"))


def test_the_inventory_tier_imports_nothing_and_says_so(environment: Environment) -> None:
    code, report, _ = environment.add("alpha", KILLED.format(name="SIGSEGV")).verify(
        tier="inventory"
    )
    assert code == 0
    assert [stage["name"] for stage in report["stages"]] == ["host", "packages"]
    assert "no package was imported, no training was run" in report["verdict"]["sentence"]


def test_events_are_one_object_a_line(environment: Environment) -> None:
    _, _, said = environment.add("alpha").verify("--events")
    events = [json.loads(line) for line in said.splitlines()]
    assert [(event["stage"], event["status"]) for event in events[:4]] == [
        ("host", "started"),
        ("host", "finished"),
        ("packages", "started"),
        ("packages", "finished"),
    ]
    assert set(events[1]) == {"event", "stage", "title", "status", "seconds", "failed"}
    assert events[-1]["event"] == "verdict"


def test_asking_for_one_check_is_never_verified(environment: Environment) -> None:
    code, report, said = environment.add("alpha").add("beta").verify("--only", "P06:alpha")
    assert (code, report["verdict"]["result"]) == (3, "unverified")
    assert [check["id"] for check in report["checks"]] == ["P06:alpha"]
    assert "Only some of the checks were run: 1 check passed" in said


def alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return "State:\tZ" not in status


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it never happened")
