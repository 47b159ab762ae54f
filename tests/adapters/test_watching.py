"""A program under watch ends, stops and is told things as if it were alone, and what it took is
written down.
"""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="runs are recorded only on Linux")

CALLER = """
import os, signal, sys
from pathlib import Path
from provision.effects.local import MonitorRequest
from provision.adapters import RealSystem
from provision.adapters.monitored_process import exit_with_signal
signal.signal(signal.SIGTERM, lambda *_: sys.exit("ours"))
subject = {"spec": "s", "target": "t", "created_utc": "now"}
program = {"name": "p", "script": "", "arguments": 1}
watch = MonitorRequest(Path(sys.argv[1]), subject, program, ("TOKEN",))
code = RealSystem().run((sys.executable, "-c", *sys.argv[2:]), os.environ, watch)
exit_with_signal(-code) if code < 0 else sys.exit(code)
"""
READY = "import signal, sys, time\ndef ready(): print('ready', flush=True)\n"


def argv(record: Path, code: str, *words: str) -> list[str]:
    return [sys.executable, "-c", CALLER, str(record), READY + code, *words]


def start(record: Path, code: str, **more: Any) -> subprocess.Popen[str]:
    program = subprocess.Popen(
        argv(record, code),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **more,
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    return program


def read(record: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(record.read_text())
    return found


@pytest.mark.parametrize(
    ("code", "ended", "name"),
    [
        ("sys.exit(7)", 7, None),
        ("import os; os.kill(os.getpid(), 15)", -15, "SIGTERM"),
        ("import os; os.kill(os.getpid(), 9)", -9, "SIGKILL"),
        ("", 0, None),
    ],
)
def test_it_ends_as_the_program_did(
    tmp_path: Path, code: str, ended: int, name: str | None
) -> None:
    done = subprocess.run(
        argv(tmp_path / "r.json", code), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == ended, done.stderr
    told = read(tmp_path / "r.json")["ended"]
    assert (told["code"], told["signal"]) == (ended if ended >= 0 else 128 - ended, name)


@pytest.mark.long(after=2)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_for_us_is_the_programs_and_comes_once(
    tmp_path: Path, number: signal.Signals
) -> None:
    counts = f"seen = []\nsignal.signal({int(number)}, lambda *_: seen.append(1))\nready()\n"
    counts += (
        "end = time.monotonic() + 300\nwhile not seen and time.monotonic() < end: "
        "time.sleep(.01)\ntime.sleep(.3)\nsys.exit(40 + len(seen))"
    )
    program = start(tmp_path / "r.json", counts)
    program.send_signal(number)
    assert (program.wait(300), program.communicate()[0]) == (41, "")


def test_a_program_has_its_own_time_to_end(tmp_path: Path) -> None:
    program = start(
        tmp_path / "r.json",
        "try:\n ready()\n time.sleep(30)\nexcept KeyboardInterrupt: print('saved'); sys.exit(3)",
    )
    program.send_signal(signal.SIGINT)
    said, _ = program.communicate(timeout=600)
    assert (program.returncode, said) == (3, "saved\n")
    assert read(tmp_path / "r.json")["ended"]["code"] == 3


def test_what_a_caller_ignores_or_leaves_open_is_so_in_the_program(tmp_path: Path) -> None:
    names = "'SIGHUP', 'SIGQUIT', 'SIGPIPE'"  # Python itself ignores SIGPIPE from its start on
    shows = (
        "import os\nprint([signal.getsignal(getattr(signal, n)) == signal.SIG_IGN for n in "
        f"({names})], os.read(int(sys.argv[1]), 5))"
    )
    first, second = os.pipe()
    os.write(second, b"hello")
    command = [
        "sh",
        "-c",
        'trap "" QUIT; exec nohup "$@"',
        "sh",
        *argv(tmp_path / "r.json", shows, str(first)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, pass_fds=(first,), timeout=600)
    assert done.stdout == "[True, False, True] b'hello'\n", done.stderr


def test_the_program_dies_with_us_and_the_record_says_that_its_end_was_not_seen(
    tmp_path: Path,
) -> None:
    program = start(
        tmp_path / "r.json",
        "import os; print(os.getpid(), file=sys.stderr, flush=True); ready(); time.sleep(60)",
    )
    assert program.stderr is not None
    pid = int(program.stderr.readline())
    program.kill()
    program.wait(300)
    limit = time.monotonic() + 300
    while (
        Path(f"/proc/{pid}").exists() or not (tmp_path / "r.json").exists()
    ) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()
    assert read(tmp_path / "r.json")["ended"]["code"] is None


def test_ctrl_c_at_a_terminal_reaches_the_program_once(tmp_path: Path) -> None:
    counts = "seen = []\nsignal.signal(2, lambda *_: seen.append(1))\nready()\n"
    counts += (
        "end = time.monotonic() + 300\nwhile not seen and time.monotonic() < end: "
        "time.sleep(.01)\ntime.sleep(.5)\nsys.exit(40 + len(seen))"
    )
    pid, master = pty.fork()
    if pid == 0:
        os.execv(sys.executable, argv(tmp_path / "r.json", counts))
    said = b""
    while b"ready" not in said:
        said += os.read(master, 1000)
    os.write(master, b"\x03")
    _, status = os.waitpid(pid, 0)
    os.close(master)
    assert os.waitstatus_to_exitcode(status) == 41


def test_where_no_record_can_be_written_the_program_runs_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        argv(tmp_path / "file/r.json", "print('ran')"), capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr


def test_another_sitecustomize_and_the_path_are_as_without_us(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.mine = 'mine'; NAME = __file__")
    shows = (
        "import sitecustomize\nprint(sys.mine, sitecustomize.NAME == sys.argv[1] + "
        "'/sitecustomize.py', [p for p in sys.path if 'hook' in p])"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        argv(tmp_path / "r.json", shows, str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
    )
    assert done.stdout == "mine True []\n", done.stderr


def test_what_torch_took_is_noted_where_the_program_imports_it(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(
        "__version__ = '2.13.0'\nclass cuda:\n    is_initialized = staticmethod(lambda: "
        "True)\n    device_count = staticmethod(lambda: 1)\n"
        "    get_device_name = staticmethod(lambda index: 'NVIDIA L4')\n    "
        "max_memory_allocated = staticmethod(lambda index: 5)\n"
        "    max_memory_reserved = staticmethod(lambda index: 7)\n    memory_summary = "
        "staticmethod(lambda index: 'table with s3cret-value')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "TOKEN": "s3cret-value"}
    for code, wanted in (("import torch", 1), ("pass", 0), ("import torch, os; os._exit(0)", 0)):
        subprocess.run(argv(tmp_path / "r.json", code), check=True, timeout=600, env=environment)
        notes = read(tmp_path / "r.json")["torch"]
        assert len(notes) == wanted, code
        if wanted:
            assert notes[0]["cards"][0] == {
                "name": "NVIDIA L4",
                "allocated_bytes": 5,
                "reserved_bytes": 7,
                "summary": "table with <redacted>",
            }
    broken = "import torch; torch.cuda.memory_summary = None; sys.exit(5)"
    assert (
        subprocess.run(
            argv(tmp_path / "r.json", broken), timeout=600, env=environment, capture_output=True
        ).returncode
        == 5
    )


def test_memory_of_all_that_a_program_starts_counts(tmp_path: Path) -> None:
    code = (
        "import subprocess\nsubprocess.run([sys.executable, '-c', 'import time; held = "
        "bytearray(150 * 2**20); time.sleep(2.5)'])"
    )
    subprocess.run(argv(tmp_path / "r.json", code), check=True, timeout=600)
    peaks = read(tmp_path / "r.json")["peaks"]
    assert peaks["ram_bytes"] > peaks["process_bytes"] > 150 * 2**20
    assert peaks["processes"] == 2
