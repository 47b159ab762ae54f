"""What goes wrong around a verification: each ends in a result or a message with its cause and the
way out, and nothing is lost.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from venv import create as create_venv

import pytest

from provision.agent.probe.report_json import canonical_digest, to_canonical_json
from tests.agent.probe.bench import Environment, checks
from tests.agent.probe.conftest import build_probe, document
from tests.rig import Bench, make_index, make_wheel, small_spec
from tests.support import require

WAITS = (
    "import os, time\nif os.environ.get('WAIT_IN'):\n    open(os.environ['WAIT_IN'], "
    "'w').write(str(os.getppid()))\n    time.sleep(120)\n"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("bad")
    (folder / "project/home").mkdir(parents=True)
    bench = Bench(
        folder / "project",
        make_index(folder / "index", (make_wheel(folder / "wheels", "alpha", "1.0", code=WAITS),)),
    )
    bench.spec(small_spec("alpha"))
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stderr
    return bench


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    root = tmp_path / "env"
    create_venv(root, symlinks=True)
    return Environment(root, build_probe(tmp_path / "probe.pyz"), document, {})


def said(done: subprocess.CompletedProcess[str], code: int) -> str:
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return " ".join(done.stderr.split())


@pytest.fixture
def python(made: Bench) -> Any:
    """The environment's interpreter, to be broken; as it was, afterwards."""
    path = (made.own / "envs/spec.local").resolve() / "bin/python"
    target = path.readlink()
    yield path
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    assert made.run("verify", "spec.yaml").returncode == 0


def test_an_interpreter_that_was_removed(made: Bench, python: Path) -> None:
    python.unlink()
    for end in (None, "/no/such/python3"):
        if end:
            python.symlink_to(end)
        words = said(made.run("verify", "spec.yaml"), 2)
        assert (
            "bin/python is missing, or is a link to a Python that was removed or upgraded" in words
        )
        assert "provision apply spec.yaml" in words
    assert "incomplete" in made.run("status", "spec.yaml").stdout


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (
            "no program at all",
            0o755,
            ("cannot be started", "Exec format error", "recreate the environment"),
        ),
        ("#!/bin/sh\nexit 1\n", 0o755, ("did not write a report", "PYTHONPATH")),
        (
            "#!/bin/sh\necho 'libpython3.11.so.1.0: cannot open shared object file'\nexit 127\n",
            0o755,
            ("libpython3.11.so.1.0",),
        ),
        ("#!/bin/sh\nkill -9 $$\n", 0o755, ("was killed", "SIGKILL", "memory")),
        ("#!/bin/sh\nkill -11 $$\n", 0o755, ("was killed", "SIGSEGV")),
    ],
)
def test_an_interpreter_that_does_not_run(
    made: Bench, python: Path, content: str, mode: int, words: tuple[str, ...]
) -> None:
    before = (made.own / "state.json").read_bytes()
    python.unlink()
    python.write_text(content)
    python.chmod(mode)
    told = said(made.run("verify", "spec.yaml"), 2)
    assert [word for word in words if word not in told] == []
    assert (made.own / "state.json").read_bytes() == before


def test_a_probe_that_is_killed_from_outside(made: Bench, tmp_path: Path) -> None:
    running, probe = _waiting(made, tmp_path)
    before = (made.own / "reports/spec.local/report.json").read_bytes()
    os.kill(probe, signal.SIGKILL)
    out, err = running.communicate(timeout=600)
    assert running.returncode == 2, out + err
    assert "the verification was killed" in err
    assert "run `provision verify` again" in err
    assert (made.own / "reports/spec.local/report.json").read_bytes() == before
    assert made.run("verify", "spec.yaml").returncode == 0
    assert (made.own / "reports/spec.local/report.json").read_bytes() != before


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("ending", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_a_verification_that_is_cut_short_leaves_the_last_report(
    made: Bench, tmp_path: Path, ending: signal.Signals, code: int
) -> None:
    before = (made.own / "reports/spec.local/report.json").read_bytes()
    running, probe = _waiting(made, tmp_path)
    running.send_signal(ending)
    _, err = running.communicate(timeout=600)
    with contextlib.suppress(ProcessLookupError):
        os.kill(probe, signal.SIGKILL)  # kill -9 leaves it; the other endings take it along
    assert running.returncode == code, err
    assert (made.own / "reports/spec.local/report.json").read_bytes() == before
    assert "VERIFIED" in made.run("report", "spec.yaml").stdout
    assert made.run("status", "spec.yaml").returncode == 0


def _waiting(made: Bench, tmp_path: Path) -> tuple[subprocess.Popen[str], int]:
    """Return a verification whose probe waits in the import of alpha, and the number of that probe:
    the parent of the stage that writes it.
    """
    pid_file = tmp_path / "pid"
    running = made.start("verify", "spec.yaml", WAIT_IN=str(pid_file))
    for _ in range(600):
        if pid_file.exists() and pid_file.read_text():
            break
        time.sleep(0.05)
    return running, int(pid_file.read_text())


@pytest.mark.long(after=3)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is damaged"),
        (b'{"schema": "provision.report/1", "checks": [', "is damaged"),
        (b"[" * 200_000, "is damaged|is not a provision report"),
        (b"\xff\xfe\x00", "is damaged|is not a provision report"),
        (b"{}", "is not a provision report"),
        (b'{"schema": "provision.report/1"}', "brought.json is damaged"),
        (b"x" * (50 * 2**20), "MiB"),
    ],
)
def test_a_report_that_is_none(made: Bench, tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "brought.json"
    path.write_bytes(content)
    for verb in (
        ("report", str(path)),
        ("diff", str(path), str(path)),
        ("report", "add", str(path), "--spec", "spec.yaml"),
    ):
        began = time.monotonic()
        told = said(made.run(*verb), 2)
        assert "brought.json" in told
        assert "help:" in told, verb
        assert time.monotonic() - began < 20
        if verb[1] != "add":
            assert re.search(words, told) or "bytes" in told, verb


WRONG = (
    "the report's digest does not match its content, so the report was modified after the probe "
    "wrote it"
)


def test_an_edited_report_proves_nothing(made: Bench, tmp_path: Path) -> None:
    report = json.loads((made.own / "reports/spec.local/report.json").read_bytes())
    assert (
        "proves nothing"
        not in made.run("report", str(made.own / "reports/spec.local/report.json")).stderr
    )
    report["checks"][0]["message"] = "all is well"
    path = tmp_path / "edited.json"
    path.write_text(to_canonical_json(report))
    done = made.run("report", str(path))
    assert "proves nothing" in done.stderr
    assert "run `provision verify`" in done.stderr
    assert "UNVERIFIED" in done.stdout
    assert f"not a proof: {WRONG} (reported verdict: verified)" in " ".join(done.stdout.split())
    assert (
        f'<error type="UNVERIFIED" message="not a proof: {WRONG}'
        in made.run("report", str(path), "--output-format", "junit").stdout
    )
    made.run("report", str(path), "--html", str(tmp_path / "page.html"))
    assert "not a proof: " in (tmp_path / "page.html").read_text()
    assert (
        json.loads(made.run("report", str(path), "--output-format", "json").stdout)["verdict"][
            "result"
        ]
        == "unverified"
    )


def test_an_edited_report_is_the_same_as_no_other(made: Bench, tmp_path: Path) -> None:
    own = made.own / "reports/spec.local/report.json"
    report = json.loads(own.read_bytes())
    report["checks"][0]["message"] = "all is well"
    path = tmp_path / "edited.json"
    path.write_text(to_canonical_json(report))
    done = made.run("diff", str(own), str(path))
    assert done.returncode == 1
    assert "edited cannot be trusted" in done.stderr
    assert (
        "edited was modified after the probe's run, so this is not a proof: the reports of local "
        "and edited do not differ" in " ".join(done.stdout.split())
    )
    told = json.loads(made.run("diff", str(path), str(own), "--output-format", "json").stdout)
    assert (told["same"], told["changed"]) == (False, ["edited"])
    assert (
        "MODIFIED REPORT" in made.run("diff", str(own), str(path), "--output-format", "html").stdout
    )
    assert made.run("diff", str(own), str(own)).returncode == 0


def test_an_edited_report_answers_no_question_of_why(made: Bench, tmp_path: Path) -> None:
    report = json.loads((made.own / "reports/spec.local/report.json").read_bytes())
    report["checks"][0]["message"] = "all is well"
    path = tmp_path / "edited.json"
    path.write_text(to_canonical_json(report))
    (tmp_path / "trace.txt").write_text("RuntimeError: No CUDA GPUs are available")
    assert (
        "cannot be trusted"
        in made.run("why", str(tmp_path / "trace.txt"), "--report", str(path)).stderr
    )
    assert "was edited or damaged" in said(
        made.run("report", "add", str(path), "--spec", "spec.yaml"), 2
    )


def test_a_forged_report_with_a_digest_of_its_own_is_no_answer(made: Bench, tmp_path: Path) -> None:
    report = json.loads((made.own / "reports/spec.local/report.json").read_bytes())
    report["verdict"]["sentence"] = "all is well"
    report["digests"]["report"] = canonical_digest(
        {key: value for key, value in report.items() if key != "digests"}
    )
    path = tmp_path / "forged.json"
    path.write_text(to_canonical_json(report) + "\n")
    told = said(made.run("report", "add", str(path), "--spec", "spec.yaml"), 2)
    assert "does not match the current spec and lock of spec/local" in told
    assert not (made.own / "carried").exists()


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    require(
        "cc",
        compiler is not None and sys.platform == "linux",
        "there is no C compiler here to make a clock with",
    )
    library = tmp_path_factory.mktemp("clock") / "clock.so"
    source = Path(__file__).with_name("shifted_clock.c")
    subprocess.run(
        [str(compiler), "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"],
        check=True,
        capture_output=True,
    )
    return library


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("year", "shift"), [("1970", None), ("2069", 43 * 365 * 86400)])
def test_a_clock_that_is_wrong_stops_nothing_here_and_is_refused_from_elsewhere(
    made: Bench, tmp_path: Path, clock: Path, year: str, shift: int | None
) -> None:
    usb, seconds = tmp_path / "usb", -int(time.time()) + 3600 if shift is None else shift
    wrong = {"LD_PRELOAD": str(clock), "SHIFT_S": str(seconds)}
    assert made.run("probe", "export", str(usb), "--spec", "spec.yaml").returncode == 0
    command = [
        str(made.own / "envs/spec.local/bin/python"),
        "probe.pyz",
        "verify",
        "--expectations",
        "expectations.json",
        "--out",
        "report.json",
    ]
    ran = subprocess.run(
        command,
        cwd=usb,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **wrong},
        capture_output=True,
        text=True,
        timeout=600,
    )
    # A clock that stands before its own files is told there already; one that runs ahead cannot be
    # known without a network.
    assert ran.returncode == (1 if shift is None else 0), ran.stdout + ran.stderr
    assert ("H09: the clock is " in ran.stdout) == (shift is None)
    assert json.loads((usb / "report.json").read_bytes())["subject"]["created_utc"].startswith(year)
    told = said(made.run("report", "add", str(usb / "report.json"), "--spec", "spec.yaml"), 2)
    assert (
        "a timestamp too far in the past" if shift is None else "a timestamp in the future"
    ) in told
    assert "clock" in told

    assert made.run("verify", "spec.yaml", **wrong).returncode == (1 if shift is None else 0)
    assert made.run("verify", "spec.yaml").returncode == 0
    assert made.run("status", "spec.yaml").returncode == 0
    assert "as locked    checks" in made.run("parity", "spec.yaml").stdout


def test_a_home_that_takes_no_files_is_told(environment: Environment) -> None:
    # /proc takes no file of anybody, root included, and needs no mount.
    code, report, _ = environment.add("alpha").verify(environ={"HOME": "/proc"})
    found = checks(report)["H10"]
    assert (code, found["status"]) == (0, "warn")
    assert "home folder" in found["message"]
    assert found["cause"]
    assert found["fix"]


def test_the_probe_of_an_earlier_version_goes_and_bytecode_is_kept(
    made: Bench, tmp_path: Path
) -> None:
    reports = made.own / "reports/spec.local"
    (reports / "probe-0123456789ab").mkdir()
    (reports / "probe-link").symlink_to(tmp_path)
    for current in reports.glob("probe-*/provision_probe"):
        shutil.rmtree(current.parent)
    (tmp_path / "precious").write_text("x")
    assert made.run("verify", "spec.yaml").returncode == 0
    (kept,) = reports.glob("probe-*")
    assert list(kept.glob("provision_probe/probe/__pycache__/*.pyc"))
    assert (tmp_path / "precious").exists()


def test_provision_works_with_a_home_that_takes_no_files(made: Bench) -> None:
    for words in (
        ("verify", "spec.yaml"),
        ("status", "spec.yaml"),
        ("env",),
        ("parity", "spec.yaml"),
    ):
        done = made.run(*words, HOME="/proc", XDG_CACHE_HOME="/proc")
        # `parity` has nothing to compare.
        assert done.returncode == (3 if words[0] == "parity" else 0), (words, done.stderr)


WITHOUT_SHM = """
mkdir -p {dev} && mount -t tmpfs none {dev}
for name in null zero random urandom
do touch {dev}/$name; mount --bind /dev/$name {dev}/$name
done
mount --rbind {dev} /dev
test ! -e /dev/shm
exec "$@"
"""


def test_a_machine_without_shared_memory(environment: Environment, tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    can = (
        unshare is not None
        and subprocess.run([unshare, "-m", "true"], capture_output=True, check=False).returncode
        == 0
    )
    require("root", can, "mount namespaces cannot be made here")
    script = tmp_path / "bare.sh"
    script.write_text(WITHOUT_SHM.format(dev=tmp_path / "dev"))
    environment.add("alpha").verify(requires__shm_bytes=2**30)
    (environment.root / "report.json").unlink()
    probe = [
        environment.python,
        str(environment.probe),
        "verify",
        "--expectations",
        str(environment.root / "expectations.json"),
    ]
    command = [
        str(unshare),
        "-m",
        "sh",
        "-e",
        str(script),
        *probe,
        "--out",
        str(environment.root / "report.json"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    report = json.loads((environment.root / "report.json").read_bytes())
    found = checks(report)["H07"]
    assert (found["status"], found["observed"]) == ("fail", "absent")
    assert "--shm-size" in found["fix"]
    assert checks(report)["P06:alpha"]["status"] == "pass"


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            (
                "raise ImportError('libtorch_cuda.so: cannot open shared object file: No such "
                "file or directory')\n"
            ),
            "libtorch_cuda.so",
        ),
        ("raise OSError('libgomp.so.1: version `GOMP_5.0 not found')\n", "libgomp.so.1"),
        (
            (
                "raise RuntimeError('module compiled against ABI version 0x1000009 but this "
                "version of numpy is 0x2000000')\n"
            ),
            "ABI version",
        ),
        ("raise ValueError('the moon is full')\n", "the moon is full"),
    ],
)
def test_a_torch_that_breaks_on_import_is_the_first_cause(
    environment: Environment, code: str, says: str
) -> None:
    exit_code, report, _ = environment.add("torch", code).verify()
    found = checks(report)
    assert exit_code == 1
    assert found["T01"]["status"] == "fail"
    assert says in found["T01"]["message"] + str(found["P06:torch"]["message"])
    assert found["P06:torch"]["cause"]
    assert found["P06:torch"]["fix"]
    assert found["R02"]["status"] == "unknown"


def test_transformers_that_are_locked_and_absent(environment: Environment) -> None:
    environment.add("torch", "__version__ = '2.13.0'\n")
    environment.packages["transformers"] = "5.23.0"
    exit_code, report, said_ = environment.verify()
    found = checks(report)
    assert exit_code == 1
    assert (found["P02"]["status"], found["P06:transformers"]["status"]) == ("fail", "fail")
    assert "transformers is not installed" in found["P02"]["message"]
    assert found["P02"]["fix"]
    assert report["subject"]["proof"] == "hf-trainer"
    assert "The environment is as declared" not in said_


def test_a_device_that_another_program_uses(environment: Environment, tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    require("cc", compiler is not None, "there is no C compiler here to make a libnvidia-ml with")
    library, source = (
        tmp_path / "libnvidia-ml.so.1",
        Path(__file__).parents[1] / "agent/probe/fake_nvml.c",
    )
    subprocess.run(
        [
            str(compiler),
            "-shared",
            "-fPIC",
            f"-Wl,-soname,{library.name}",
            "-o",
            str(library),
            str(source),
        ],
        check=True,
        capture_output=True,
    )
    variables = {"LD_LIBRARY_PATH": str(tmp_path), "FAKE_NVML": "used_mib=22000"}
    _, report, _ = environment.verify(
        environ=variables, gpu={"type": "L4", "count": 1}, tier="inventory"
    )
    found = checks(report)["D08"]
    assert found["status"] in ("warn", "fail")
    assert "21.48 GiB of 22.49 GiB" in found["message"]
    assert "nvidia-smi" in found["fix"]


@pytest.mark.parametrize(
    "words",
    [
        ("report", "no.json"),
        ("diff", "no.json", "no.json"),
        ("why", "no.txt"),
        ("why", "spec.yaml", "--report", "no.json"),
        ("report", "add", "no.json"),
    ],
    ids=" ".join,
)
def test_a_file_that_is_not_there_is_named_with_a_way_out(
    made: Bench, words: tuple[str, ...]
) -> None:
    told = said(made.run(*words), 2)
    assert "error: cannot read no." in told
    assert re.search("help: (?:name|use) (?:a|the) ", told)


def test_a_target_is_not_chosen_in_a_file(made: Bench) -> None:
    path = str(made.own / "reports/spec.local/report.json")
    told = said(made.run("report", path, "--target", "elsewhere"), 2)
    assert "--target selects targets in a spec" in told
    assert "omit --target" in told


def test_a_report_of_the_sandbox_is_named_where_there_is_no_other(made: Bench) -> None:
    own, simulated = (
        made.own / "reports/spec.local/report.json",
        made.own / "sandbox/state/reports/spec.local/report.json",
    )
    simulated.parent.mkdir(parents=True)
    own.rename(simulated)
    try:
        told = said(made.run("report", "spec.yaml"), 2)
        assert (
            "to view the sandbox's report, run `provision report "
            ".provision/sandbox/state/reports/spec.local/report.json" in told
        )
    finally:
        simulated.rename(own)
        shutil.rmtree(made.own / "sandbox")
