"""No program outlives us: real processes, ended on timeouts, interrupts and our own death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from provision.world import process

# Starts a grandchild that does not heed SIGTERM, notes both, and waits.
FAMILY = """
import os, pathlib, signal, subprocess, sys, time
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
grandchild = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
grandchild.stdout.readline()
pathlib.Path(sys.argv[1]).write_text(f"{os.getpid()} {grandchild.pid}")
time.sleep(60)
"""
# Calls `capture`, `stream` or `foreground` as the program does, with its own way of ending on SIGTERM.
CALLER = """
import os, signal, sys
from provision.world import process
class Terminated(BaseException): pass
def end(*_): raise Terminated
signal.signal(signal.SIGTERM, end)
argv = [sys.executable, "-c", sys.argv[2], sys.argv[3]]
try:
    {"capture": lambda: process.capture(argv, os.environ), "stream": lambda: process.stream(argv, os.environ, print),
     "foreground": lambda: process.foreground(argv, os.environ)}[sys.argv[1]]()
except (KeyboardInterrupt, Terminated) as error:
    sys.exit(f"ended by {type(error).__name__}")
"""
LONELY = "import os, pathlib, sys, time; pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); time.sleep(60)"


def pids(path: Path) -> list[int]:
    """Wait for the note of a family and return its process numbers."""
    for _ in range(400):
        if path.exists() and path.read_text():
            return [int(word) for word in path.read_text().split()]
        time.sleep(0.05)
    raise AssertionError("the family did not start")


def gone(pid: int) -> bool:
    """Wait until a process has ended (a zombie has); False when it is still at work after some seconds."""
    for _ in range(160):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        stat = Path(f"/proc/{pid}/stat")
        if stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


def test_what_a_program_wrote_and_how_it_ended() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.stdout.buffer.write(b'\\xff'); sys.exit(3)"
    done = process.capture([sys.executable, "-c", code], os.environ)
    assert (done.code, done.stdout, done.stderr) == (3, "out\n\ufffd", "err\n")
    assert process.capture([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], os.environ).code == -9
    assert process.capture([sys.executable, "-c", "import sys; print(repr(sys.stdin.read()))"], os.environ).stdout == "''\n"


def test_lines_come_one_by_one_and_the_last_are_kept() -> None:
    seen: list[str] = []
    done = process.stream([sys.executable, "-c", "import sys; [print(n) for n in range(300)]; print('error', file=sys.stderr)"], os.environ, seen.append)
    assert sorted(seen) == sorted([*map(str, range(300)), "error"])
    assert len(done.stdout.splitlines()) == 200


def test_a_program_gets_only_the_variables_it_is_given() -> None:
    done = process.capture([sys.executable, "-I", "-c", "import os; print(sorted(set(os.environ) - {'LC_CTYPE'}))"], {"ONLY": "this"})
    assert done.stdout == "['ONLY']\n"


def test_after_a_timeout_the_whole_family_is_ended(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        process.capture([sys.executable, "-c", FAMILY, str(tmp_path / "pids")], os.environ, timeout_s=2)
    assert all(gone(pid) for pid in pids(tmp_path / "pids"))


def test_a_stream_that_takes_too_long_ends_too(tmp_path: Path) -> None:
    began = time.monotonic()
    done = process.stream([sys.executable, "-c", FAMILY, str(tmp_path / "pids")], os.environ, print, timeout_s=2)
    assert done.code != 0
    assert time.monotonic() - began < 30
    assert all(gone(pid) for pid in pids(tmp_path / "pids"))


@pytest.mark.parametrize("way", ["capture", "stream"])
@pytest.mark.parametrize(("blow", "words"), [(signal.SIGINT, "KeyboardInterrupt"), (signal.SIGTERM, "Terminated")])
def test_an_interrupt_ends_the_whole_family_first(tmp_path: Path, way: str, blow: signal.Signals, words: str) -> None:
    caller = subprocess.Popen([sys.executable, "-c", CALLER, way, FAMILY, str(tmp_path / "pids")], stderr=subprocess.PIPE, text=True)
    family = pids(tmp_path / "pids")
    caller.send_signal(blow)
    _, said = caller.communicate(timeout=30)
    assert said == f"ended by {words}\n"
    assert all(gone(pid) for pid in family)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
@pytest.mark.parametrize("way", ["capture", "stream"])
def test_a_program_dies_with_us(tmp_path: Path, way: str) -> None:
    caller = subprocess.Popen([sys.executable, "-c", CALLER, way, LONELY, str(tmp_path / "pids")])
    (child,) = pids(tmp_path / "pids")
    caller.kill()
    caller.wait(30)
    assert gone(child)


def test_a_program_in_the_foreground_is_ended_when_we_are_told_to_end(tmp_path: Path) -> None:
    caller = subprocess.Popen([sys.executable, "-c", CALLER, "foreground", LONELY, str(tmp_path / "pids")], stderr=subprocess.PIPE, text=True)
    (child,) = pids(tmp_path / "pids")
    caller.send_signal(signal.SIGTERM)
    _, said = caller.communicate(timeout=30)
    assert said == "ended by Terminated\n"
    assert gone(child)


def test_ctrl_c_is_the_foreground_programs_to_answer(tmp_path: Path) -> None:
    answers = LONELY.replace("time.sleep(60)", "\ntry: time.sleep(60)\nexcept KeyboardInterrupt: sys.exit(0)")
    script = CALLER + "print('went on')\n"
    caller = subprocess.Popen(
        [sys.executable, "-c", script, "foreground", answers, str(tmp_path / "pids")], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    pids(tmp_path / "pids")
    os.killpg(caller.pid, signal.SIGINT)
    said, _ = caller.communicate(timeout=30)
    assert caller.returncode == 0
    assert said == "went on\n"


def test_the_foreground_programs_end_is_told_as_a_shell_does() -> None:
    assert process.foreground([sys.executable, "-c", "raise SystemExit(7)"], os.environ) == 7
    assert process.foreground([sys.executable, "-c", "import os; os.kill(os.getpid(), 15)"], os.environ) == 143
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
