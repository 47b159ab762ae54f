"""No program outlives us: real processes, ended on timeouts, interrupts and our own death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from provision.adapters import process

# Starts a grandchild that does not heed SIGTERM, notes both, and waits.
FAMILY = """
import os, pathlib, signal, subprocess, sys, time
deaf = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('deaf', flush=True); time.sleep(60)"
)
grandchild = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
grandchild.stdout.readline()
pathlib.Path(sys.argv[1]).write_text(f"{os.getpid()} {grandchild.pid}")
time.sleep(60)
"""
# Calls `capture` or `stream` as the program does, with its own way of ending on SIGTERM.
CALLER = """
import os, signal, sys
from provision.adapters import process
class Terminated(BaseException): pass
def end(*_): raise Terminated
signal.signal(signal.SIGTERM, end)
argv = [sys.executable, "-c", sys.argv[2], sys.argv[3]]
try:
    if sys.argv[1] == "capture":
        process.capture(argv, os.environ)
    else:
        process.stream(argv, os.environ, print)
except (KeyboardInterrupt, Terminated) as error:
    sys.exit(f"ended by {type(error).__name__}")
"""
LONELY = (
    "import os, pathlib, sys, time; pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); "
    "time.sleep(60)"
)


def pids(path: Path) -> list[int]:
    """Wait for the note of a family and return its process numbers."""
    for _ in range(400):
        if path.exists() and path.read_text():
            return [int(word) for word in path.read_text().split()]
        time.sleep(0.05)
    raise AssertionError("the family did not start")


def gone(pid: int) -> bool:
    """Wait until a process has ended (a zombie has); False when it is still at work after some
    seconds.
    """
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
    code = (
        "import sys; print('out'); print('err', file=sys.stderr); "
        "sys.stdout.buffer.write(b'\\xff'); sys.exit(3)"
    )
    done = process.capture([sys.executable, "-c", code], os.environ)
    assert (done.code, done.stdout, done.stderr) == (3, "out\n\ufffd", "err\n")
    assert (
        process.capture(
            [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], os.environ
        ).code
        == -9
    )
    assert (
        process.capture(
            [sys.executable, "-c", "import sys; print(repr(sys.stdin.read()))"], os.environ
        ).stdout
        == "''\n"
    )


def test_lines_come_one_by_one_and_the_last_are_kept() -> None:
    seen: list[str] = []
    done = process.stream(
        [
            sys.executable,
            "-c",
            "import sys; [print(n) for n in range(300)]; print('error', file=sys.stderr)",
        ],
        os.environ,
        seen.append,
    )
    assert sorted(seen) == sorted([*map(str, range(300)), "error"])
    assert len(done.stdout.splitlines()) == 200


def test_a_program_gets_only_the_variables_it_is_given() -> None:
    done = process.capture(
        [sys.executable, "-I", "-c", "import os; print(sorted(set(os.environ) - {'LC_CTYPE'}))"],
        {"ONLY": "this"},
    )
    assert done.stdout == "['ONLY']\n"


def test_after_a_timeout_the_whole_family_is_ended(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        process.capture(
            [sys.executable, "-c", FAMILY, str(tmp_path / "pids")], os.environ, timeout_s=2
        )
    assert all(gone(pid) for pid in pids(tmp_path / "pids"))


def test_a_stream_that_takes_too_long_ends_too(tmp_path: Path) -> None:
    began = time.monotonic()
    done = process.stream(
        [sys.executable, "-c", FAMILY, str(tmp_path / "pids")], os.environ, print, timeout_s=2
    )
    assert done.code != 0
    assert time.monotonic() - began < 30
    assert all(gone(pid) for pid in pids(tmp_path / "pids"))


@pytest.mark.parametrize("way", ["capture", "stream"])
@pytest.mark.parametrize(
    ("blow", "words"), [(signal.SIGINT, "KeyboardInterrupt"), (signal.SIGTERM, "Terminated")]
)
def test_an_interrupt_ends_the_whole_family_first(
    tmp_path: Path, way: str, blow: signal.Signals, words: str
) -> None:
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER, way, FAMILY, str(tmp_path / "pids")],
        stderr=subprocess.PIPE,
        text=True,
    )
    family = pids(tmp_path / "pids")
    caller.send_signal(blow)
    _, said = caller.communicate(timeout=600)
    assert said == f"ended by {words}\n"
    assert all(gone(pid) for pid in family)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
@pytest.mark.parametrize("way", ["capture", "stream"])
def test_a_program_dies_with_us(tmp_path: Path, way: str) -> None:
    caller = subprocess.Popen([sys.executable, "-c", CALLER, way, LONELY, str(tmp_path / "pids")])
    (child,) = pids(tmp_path / "pids")
    caller.kill()
    caller.wait(300)
    assert gone(child)


def becoming(code: str, *words: str) -> list[str]:
    """A Python that says `before` and then becomes one that runs `code`, with the handlers and
    ignored signals of the command line.
    """
    first = (
        "import os, signal, sys; from provision.adapters import process\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit('ours'))\n"
        "sys.stdout.write('before\\n'); process.exec_program([sys.executable, '-c', "
        "*sys.argv[1:]], os.environ)"
    )
    return [sys.executable, "-c", first, code, *words]


@pytest.mark.parametrize(
    ("code", "ended"),
    [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 15)", -15), ("print('out')", 0)],
)
def test_a_program_that_we_become_ends_as_itself(code: str, ended: int) -> None:
    done = subprocess.run(becoming(code), capture_output=True, text=True, timeout=600)
    assert done.returncode == ended
    assert done.stdout == ("before\nout\n" if ended == 0 else "before\n"), (
        "what we wrote comes first"
    )


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc here")
@pytest.mark.parametrize(
    ("ignored", "kept"),
    [
        ((), ()),
        ((signal.SIGQUIT,), ()),
        ((signal.SIGHUP, signal.SIGINT), (signal.SIGHUP, signal.SIGINT)),
    ],
)
def test_a_program_ignores_only_what_its_caller_meant_it_to_ignore(
    ignored: tuple[int, ...], kept: tuple[int, ...]
) -> None:
    def ignore() -> None:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    first = (
        "import os; from provision.adapters import process; process.exec_program(['/bin/grep', "
        "'SigIgn', '/proc/self/status'], os.environ)"
    )
    done = subprocess.run(
        [sys.executable, "-c", first],
        capture_output=True,
        text=True,
        timeout=600,
        preexec_fn=ignore,
    )
    named = (
        1 << 31
    ) - 1  # higher numbers are signals of the C library, which a caller may have left ignored
    assert int(done.stdout.split()[-1], 16) & named == sum(1 << (number - 1) for number in kept), (
        done.stdout
    )


def test_a_program_that_we_became_has_its_own_time_to_end(tmp_path: Path) -> None:
    saves = LONELY.replace(
        "time.sleep(60)", "\ntry: time.sleep(60)\nfinally: print('saved')"
    ).replace("import os", "import signal, os", 1)
    saves = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\n" + saves
    program = subprocess.Popen(
        becoming(saves, str(tmp_path / "pids")), stdout=subprocess.PIPE, text=True
    )
    assert pids(tmp_path / "pids") == [program.pid], "there is no process of ours beside it"
    program.send_signal(signal.SIGTERM)
    said, _ = program.communicate(timeout=600)
    assert (program.returncode, said) == (3, "before\nsaved\n")


def test_what_cannot_be_started_is_said_with_the_way_out(tmp_path: Path) -> None:
    script = tmp_path / "train"
    script.write_text("print('no first line')\n")
    script.chmod(0o755)
    code = (
        "import sys; from provision.errors import ExternalError; from provision.adapters "
        "import RealSystem\n"
        "try: RealSystem().run((sys.argv[1],), {'PATH': '/bin'})\nexcept ExternalError as error: "
        "print(error.what, '|', error.hint)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(script)], capture_output=True, text=True, timeout=600
    )
    assert done.stdout == (
        f"cannot start {script} | a script must start with a line such as #!/usr/bin/env python3\n"
    ), done.stderr
    missing = subprocess.run(
        [sys.executable, "-c", code, "nonesuch-program"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert missing.stdout.startswith("there is no program called nonesuch-program | "), (
        missing.stderr
    )
