"""SIGINT, SIGTERM and SIGHUP at any moment in the life of a short command: it ends with its own
code or 128 + n, and leaves what the next command can read.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from provision.adapters import RealSystem
from provision.lock import loads as read_lock
from provision.state_store import LocalStore
from tests.rig import Bench, small_spec

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STARTS = {
    "console script": [
        sys.executable,
        "-c",
        "import sys; from provision.cli import run_cli; sys.exit(run_cli())",
    ],
    "module": [sys.executable, "-m", "provision"],
}
COMMANDS = {
    "lint": ("lint", "spec.yaml"),
    "plan": ("plan", "spec.yaml"),
    "status": ("status", "spec.yaml"),
    "lock": ("lock", "spec.yaml", "--check"),
    "apply": ("apply", "spec.yaml", "--yes"),
}
OWN_CODES = {"lint": {0}, "plan": {0}, "status": {0, 1}, "lock": {0, 1}, "apply": {0}}
"""What a command answers that no signal reached: an apply that was interrupted leaves a stale lock
and what is not current.
"""
pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="/proc shows which signals a process handles"
)


@dataclass
class Attack:
    """A project in which commands are started and sent signals; `covered` counts those that came
    when the handlers stood.
    """

    project: Bench
    random: random.Random
    seconds: dict[str, float] = field(default_factory=dict)
    covered: int = 0
    late: int = 0
    ended: int = 0

    def start(self, name: str) -> subprocess.Popen[str]:
        """Start a command as a true process; an apply has something to change."""
        if name == "apply":
            self.project.spec(small_spec(self.random.choice(["alpha", "beta", "gamma"])))
        return subprocess.Popen(
            [*self.random.choice(list(STARTS.values())), *COMMANDS[name]],
            cwd=self.project.folder,
            env=self.project.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def measure(self, name: str) -> None:
        """Note how long a command takes that no signal reaches."""
        began = time.monotonic()
        process = self.start(name)
        _, said = process.communicate(timeout=600)
        self.seconds[name] = time.monotonic() - began
        assert process.returncode in OWN_CODES[name], said

    def send(self, name: str) -> None:
        """Send one signal at a random moment of a command, and judge how it ends."""
        number, after = (
            self.random.choice(SIGNALS),
            self.random.uniform(0, self.seconds[name] * 1.05),
        )
        process = self.start(name)
        due = time.monotonic() + after
        while not (covered := handles(process.pid)) and time.monotonic() < due:
            time.sleep(0.002)
        time.sleep(max(0, due - time.monotonic()))
        if process.poll() is None:
            self.covered += covered
            process.send_signal(number)
        else:
            self.late += 1
        said, told = process.communicate(timeout=600)
        what = (
            f"{name}, {number.name} after {after:.3f} s, handled: {covered}, exit code "
            f"{process.returncode}:\n{said}{told}"
        )
        self.ended += process.returncode == 128 + number
        if covered:
            assert process.returncode in {*OWN_CODES[name], 128 + number}, what
            assert "Traceback" not in told, what
            assert "Exception ignored" not in told, what
        else:  # the interpreter starts
            assert process.returncode in {*OWN_CODES[name], 128 + number, -number, 1}, what
        self.read(what)

    def read(self, what: str) -> None:
        """Read all that a command leaves for the next one."""
        LocalStore(self.project.own, RealSystem()).load_ledger()
        lock = self.project.folder / "spec.lock"
        assert read_lock(lock.read_text(), str(lock)).packages, what


def handles(pid: int) -> bool:
    """Return whether a process catches or ignores SIGHUP: the entry point sets its handler last."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return False
    masks = {
        name: int(value, 16)
        for name, _, value in (line.partition(":") for line in lines)
        if name in {"SigCgt", "SigIgn"}
    }
    return bool(sum(masks.values()) & 1 << signal.SIGHUP - 1)


@pytest.mark.long(minutes=True)
@pytest.mark.parametrize(("seed", "signals"), [(1, 10), (2, 500)])
def test_signals_at_random_moments(applied: Bench, seed: int, signals: int) -> None:
    attack = Attack(applied, random.Random(seed))
    for name in COMMANDS:
        attack.measure(name)
    order = [*list(COMMANDS)[:-1] * 5, "apply"]
    for turn in range(signals):
        attack.send(order[turn % len(order)])
    print(
        f"seed {seed}, {signals} signals: {attack.covered} when handlers stood, "
        f"{attack.late} too late, {attack.ended} ended by theirs"
    )
    assert attack.covered
    assert attack.ended
    done = applied.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stderr


def test_an_interrupt_handled_after_exec_does_not_kill_the_interpreter(tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(
        "import sys\n"
        "from provision.cli import signals\n"
        "try: exec('raise KeyboardInterrupt')\n"
        "except KeyboardInterrupt: signals.clear_unhandled_interrupt()\n"
        "sys.exit(130)\n"
    )
    command = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(command, cwd=tmp_path, timeout=600, check=False)
    assert done.returncode == 130  # by itself, and not killed by SIGINT: -2


def test_nothing_else_is_imported_before_the_handlers(tmp_path: Path) -> None:
    code = (
        "import sys; before = set(sys.modules); from provision.cli import run_cli; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert {name for name in loaded if name.startswith("provision")} == {
        "provision",
        "provision.cli",
        "provision.cli.entry",
        "provision.cli.signals",
    }
    assert {name.split(".")[0] for name in loaded} <= {*sys.stdlib_module_names, "provision"}
    assert not loaded & {"typing", "re", "json", "pathlib", "click"}


COMMAND = """
import atexit, os, signal, sys, threading, time
from provision.cli import main, run_cli
send = lambda: (os.kill(os.getpid(), signal.{number}), time.sleep(0.01))
class InCallback:
    def __del__(self, kill=os.kill, pid=os.getpid(), number=signal.{number}, sleep=time.sleep):
        kill(pid, number)  # without names of modules, which are gone when `sys` is taken down
        sleep(0.01)
class InSetName:
    def __set_name__(self, owner, name):
        send()
def drop():
    InCallback()
    time.sleep(60)
def define():
    class Owner:
        name = InSetName()
def at_exit():
    atexit.register(send)
def while_threads_end():
    threading.Thread(target=time.sleep, args=(1,)).start()
    threading.Thread(target=lambda: (time.sleep(0.3), send())).start()
def when_taken_down():
    sys.kept = InCallback()
class SlowEnd:
    def __del__(self, sleep=time.sleep):
        sleep(1)
def drop_at_the_end():
    from provision.cli import signals
    signals._RAISE_AGAIN_AFTER_S = 0.5
    sys.kept = SlowEnd()
    InCallback()
def once_more():
    try:
        send()
    finally:
        send()
main.app.main = lambda *_, **__: {work}()
sys.argv = ["provision"]
sys.exit(run_cli())
"""


MOMENTS = ["send", "drop", "define", "at_exit", "while_threads_end", "when_taken_down", "once_more"]


@pytest.mark.parametrize(
    ("work", "number"),
    [
        *((work, signal.SIGTERM) for work in MOMENTS),
        *((work, signal.SIGINT) for work in MOMENTS[:4]),
        ("send", signal.SIGHUP),
    ],
)
def test_signals_at_chosen_moments(work: str, number: signal.Signals, tmp_path: Path) -> None:
    code = COMMAND.format(number=number.name, work=work)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=50
    )
    assert done.returncode == (0 if work == "when_taken_down" else 128 + number), done.stderr
    assert len(done.stderr.splitlines()) <= 1, done.stderr


def test_an_interrupt_that_python_drops_at_the_end_kills_nothing(tmp_path: Path) -> None:
    """It is raised again a moment later, when the interpreter may have no handlers any more."""
    code = COMMAND.format(number="SIGHUP", work="drop_at_the_end")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, timeout=50)
    assert done.returncode in (0, 128 + signal.SIGHUP)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_that_is_ignored_stays_ignored(number: signal.Signals, tmp_path: Path) -> None:
    ignored = f'trap "" {number.name.removeprefix("SIG")}; exec "$@"'
    argv = [
        "sh",
        "-c",
        ignored,
        "sh",
        sys.executable,
        "-c",
        COMMAND.format(number=number.name, work="send"),
    ]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stderr) == (0, "")
