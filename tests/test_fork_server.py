"""A fork of the server is the process that a started program would be."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests import fork_server
from tests.conftest import ROOT
from tests.rig import Bench, small_spec

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are used on Linux only")

WORDS = [
    ("--version",),
    ("lint", "spec.yaml"),
    ("lint", "nowhere.yaml"),
    ("lint", "--nonsense"),
    ("lock", "spec.yaml"),
    ("apply", "spec.yaml"),
    ("completion", "bash"),
]
PIPES: dict[str, Any] = {
    "stdin": subprocess.PIPE,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    "text": True,
}
READS = ["why", "-"]
"""A command that waits for its standard input."""


@pytest.mark.long(after=2)
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_it_says_and_ends_as_a_started_program(bench: Bench, words: tuple[str, ...]) -> None:
    bench.spec(small_spec("alpha"))
    options: dict[str, Any] = {
        "cwd": bench.folder,
        "env": bench.environment(),
        "capture_output": True,
        "text": True,
        "stdin": subprocess.DEVNULL,
    }
    forked = fork_server.run(bench.argv(*words), **options)
    (bench.folder / "spec.lock").unlink(missing_ok=True)
    started = subprocess.run(bench.argv(*words), **options)
    assert (forked.returncode, forked.stdout, forked.stderr) == (
        started.returncode,
        started.stdout,
        started.stderr,
    )


def highest_descriptor() -> int:
    return max(int(path.name) for path in Path("/dev/fd").iterdir())


def test_it_inherits_what_a_started_program_inherits(tmp_path: Path) -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    umask, mask = os.umask(0o027), signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest_descriptor() + 100, limit[1]))
    try:
        started = seen_of(
            subprocess.Popen(
                [*fork_server.ARGV, *READS], cwd=tmp_path, start_new_session=True, **PIPES
            )
        )
        forked = seen_of(
            fork_server.Process(
                [*fork_server.ARGV, *READS], cwd=tmp_path, start_new_session=True, **PIPES
            )
        )
    finally:
        os.umask(umask)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGHUP, handler)
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    assert forked == started
    assert (forked["Umask"], forked["Threads"], forked["files"], forked["leader"]) == (
        "0027",
        "1",
        ["0", "1", "2"],
        True,
    )
    assert int(forked["SigBlk"], 16) == 1 << (signal.SIGUSR1 - 1)
    assert int(forked["SigIgn"], 16) & 1 << (signal.SIGHUP - 1)


def test_a_signal_ends_it_and_is_its_exit_code(tmp_path: Path) -> None:
    for number, code in ((signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, 143)):
        process = fork_server.Process([*fork_server.ARGV, *READS], cwd=tmp_path, **PIPES)
        seen_of(process, end=False)
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.send_signal(number)
        process.communicate()
        assert process.returncode == process.wait() == process.poll() == code


def test_a_call_that_outlasts_its_limit_is_killed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "waits")
    held = os.open(tmp_path / "waits", os.O_RDWR)
    with pytest.raises(subprocess.TimeoutExpired):
        fork_server.run(
            [*fork_server.ARGV, *READS], stdin=held, capture_output=True, text=True, timeout=0.5
        )
    os.close(held)


@pytest.mark.skipif(os.environ.get("PROVISION_TEST_FORK") == "0", reason="no call forks")
def test_a_change_that_a_fork_cannot_have_starts_a_program() -> None:
    own = dict(os.environ)
    assert fork_server.can_fork([*fork_server.ARGV, "lint"], {"env": own})
    for name in ("PYTHONPATH", "PYTHONHASHSEED", "LANG", "LC_ALL", "LD_PRELOAD"):
        assert not fork_server.can_fork(
            [*fork_server.ARGV, "lint"], {"env": {**own, name: "other"}}
        ), name
    assert not fork_server.can_fork([sys.executable, "-c", "pass"], {})
    assert not fork_server.can_fork([*fork_server.ARGV, "lint"], {"preexec_fn": os.getpid})


def test_the_server_refuses_to_fork_beside_a_thread(tmp_path: Path) -> None:
    program = (
        "import threading, time, sys; sys.path.insert(0, sys.argv[1]); from tests import "
        "fork_server\n"
        "threading.Thread(target=time.sleep, args=(60,), "
        "daemon=True).start()\nfork_server.serve(int(sys.argv[2]))"
    )
    server = fork_server.Server((sys.executable, "-c", program))
    with pytest.raises(RuntimeError, match="made no process: it has 2 threads"):
        server.fork(fork_server.request_of(["--version"], os.environ, tmp_path), [0, 1, 2])
    server.close()


def test_the_server_imports_neither_torch_nor_grpc() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from tests.fork_server import "
        "import_all\nimport_all(); print({'torch', 'grpc'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(ROOT)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def seen_of(process: subprocess.Popen[str], *, end: bool = True) -> dict[str, Any]:
    """Return what the kernel says of a process that waits for its input."""
    folder = Path(f"/proc/{process.pid}")
    last, same = {}, 0
    limit = time.monotonic() + 60
    while same < 5 and time.monotonic() < limit:
        status = dict(
            line.split(":\t", 1)
            for line in (folder / "status").read_text().splitlines()
            if ":\t" in line
        )
        now = {
            name: status[name].strip()
            for name in ("State", "Umask", "Threads", "SigBlk", "SigIgn", "SigCgt")
        }
        now["files"] = sorted(path.name for path in (folder / "fd").iterdir())
        now["limits"] = (folder / "limits").read_text()
        now["cwd"] = str((folder / "cwd").resolve())
        now["leader"] = os.getsid(process.pid) == process.pid
        same = same + 1 if now == last and now["State"].startswith("S") else 0
        last = now
        time.sleep(0.05)
    if end:
        process.communicate("")
    return last
