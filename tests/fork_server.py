"""Runs `provision` in forks of one process that has imported it: real processes, without the
imports that each would repeat.

`Process` is `subprocess.Popen` and `run` is `subprocess.run`, for the program `python -m
provision`. A fork has its own exit code, signals, streams and process
group. It cannot have what an interpreter reads when it starts (the variables PYTHON..., the
locale, preloaded libraries), so a call that changes one of these
starts a true process. With PROVISION_TEST_FORK=0 every call does.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import io
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

REGISTRY_VARIABLE = "PROVISION_TEST_REGISTRY"
"""Names the registry of a fork; a started program does not know it."""
ARGV = [sys.executable, "-m", "provision"]
_STARTUP = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "GLIBC_", "COVERAGE_")
_UNSUPPORTED = (
    "preexec_fn",
    "pass_fds",
    "executable",
    "shell",
    "process_group",
    "user",
    "group",
    "umask",
)
_LIMITS = [getattr(resource, name) for name in sorted(dir(resource)) if name.startswith("RLIMIT_")]
_SIGNALS = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
)
_ON_DEVICE = ("_assets", "agent")
_LIBRARIES = (
    "click._textwrap",
    "encodings.idna",
    "http.server",
    "jinja2",
    "logging.handlers",
    "rich.console",
    "rich.markup",
    "rich.progress",
    "rich.table",
    "packaging.requirements",
    "uv",
    "urllib.request",
)
_GOOGLE_LIBRARIES = (
    "google.auth.transport.requests",
    "google.oauth2.credentials",
    "google.protobuf.json_format",
    "google.rpc.status_pb2",
    "proto",
)
"""What the clients import before gRPC, of the extra `workbench`."""
_SERVER = (
    "import sys; sys.path.insert(0, sys.argv[1]); from tests.fork_server import serve; "
    "serve(int(sys.argv[2]))"
)


def can_fork(arguments: object, options: Mapping[str, Any]) -> bool:
    """Return whether a fork would behave as the program that `subprocess.Popen` starts with these
    arguments and options.
    """
    if (
        sys.platform != "linux"
        or os.environ.get("PROVISION_TEST_FORK") == "0"
        or any(options.get(name) for name in _UNSUPPORTED)
    ):
        return False
    return (
        isinstance(arguments, list)
        and arguments[:3] == ARGV
        and _at_startup(os.environ) == _at_startup(options.get("env") or os.environ)
    )


class Process(subprocess.Popen[str]):
    """A `subprocess.Popen` that forks if it can."""

    def __init__(self, arguments: list[str], **options: Any) -> None:
        self._status: socket.socket | None = None
        self._forks = can_fork(arguments, options)
        super().__init__(arguments, **options)

    def _execute_child(
        self,
        args: Any,
        executable: Any,
        preexec_fn: Any,
        close_fds: Any,
        pass_fds: Any,
        cwd: Any,
        env: Any,
        *rest: Any,
    ) -> None:
        if not self._forks:
            super()._execute_child(
                args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *rest
            )
            return
        (
            _,
            _,
            _,
            stdin,
            to_stdin,
            from_stdout,
            stdout,
            from_stderr,
            stderr,
            *_,
            start_new_session,
            _,
        ) = rest
        given = [
            standard if number == -1 else number
            for standard, number in enumerate((stdin, stdout, stderr))
        ]
        request = request_of(
            args[3:],
            os.environ if env is None else env,
            Path.cwd() if cwd is None else cwd,
            session=start_new_session,
        )
        self._status, self.pid = _server().fork(request, given)
        self._child_created = True
        self._close_pipe_fds(stdin, to_stdin, from_stdout, stdout, from_stderr, stderr)

    def _internal_poll(self, *args: Any, **options: Any) -> int | None:
        if self._status is None:
            return super()._internal_poll(*args, **options)
        if self.returncode is None and _readable(self._status, 0):
            self._receive_status()
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self._status is None:
            return super()._wait(timeout)
        if self.returncode is None:
            if not _readable(self._status, timeout):
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self._receive_status()
        return self.returncode

    def _receive_status(self) -> None:
        assert self._status is not None
        with self._status:
            status = self._status.recv(64)
        if not status:
            raise RuntimeError(
                f"the fork server ended before process {self.pid}; PROVISION_TEST_FORK=0 "
                "does without it"
            )
        self.returncode = os.waitstatus_to_exitcode(int(status))


def run(
    arguments: list[str],
    *,
    input: str | None = None,  # noqa: A002
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """Run a program by `Process` and return how it ended, as `subprocess.run` does."""
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with Process(arguments, **options) as process:
        try:
            stdout, stderr = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)
    if check:
        done.check_returncode()
    return done


def request_of(
    words: list[str], environment: Mapping[str, str], cwd: str | Path, *, session: bool = False
) -> dict[str, Any]:
    """Return what a child of this process with these words would be given."""
    return {
        "words": words,
        "cwd": os.fspath(cwd),
        "environment": dict(environment),
        "session": session,
        "umask": _umask(),
        "ignored": [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_IGN],
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "limits": [resource.getrlimit(number) for number in _LIMITS],
    }


class Server:
    """A running fork server; it ends with this process."""

    def __init__(self, command: tuple[str, ...] = (sys.executable, "-c", _SERVER)) -> None:
        """Start it; the command is given the repository and the number of its socket."""
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            words = [*command, str(Path(__file__).parents[1]), str(theirs.fileno())]
            self._process = subprocess.Popen(
                words,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
            )
        atexit.register(self.close)

    def fork(self, request: dict[str, Any], streams: list[int]) -> tuple[socket.socket, int]:
        """Return the socket that will receive the wait status, and the process id."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with tempfile.TemporaryFile() as document, theirs:
            document.write(json.dumps(request).encode())
            document.flush()
            socket.send_fds(self._socket, [b"fork"], [document.fileno(), theirs.fileno(), *streams])
        answer = ours.recv(4096).decode()
        if not answer.isdigit():
            raise RuntimeError(f"the fork server made no process: {answer or 'it has ended'}")
        return ours, int(answer)

    def close(self) -> None:
        """End the server."""
        self._socket.close()
        self._process.wait()


_server = functools.cache(Server)


def serve(number: int) -> None:
    """Fork for each request on the socket `number`, and report how each child ends, until the other
    end is closed.
    """
    import_all()
    control, children = socket.socket(fileno=number), dict[int, tuple[int, socket.socket]]()
    poller = select.poll()
    poller.register(control, select.POLLIN)
    while True:
        for ready, _ in poller.poll():
            if ready in children:
                poller.unregister(ready)
                _report(ready, *children.pop(ready))
                continue
            _, descriptors, _, _ = socket.recv_fds(control, 16, 5)
            if not descriptors:
                return
            with (
                io.FileIO(descriptors[0]) as document,
                socket.socket(fileno=descriptors[1]) as status,
            ):
                document.seek(0)
                request = json.load(document)
                threads, pid = len(list(Path("/proc/self/task").iterdir())), -1
                if threads != 1:
                    status.send(f"it has {threads} threads".encode())
                elif pid := os.fork():
                    status.send(str(pid).encode())
                    watch = os.pidfd_open(pid)
                    children[watch] = pid, status.dup()
                    poller.register(watch, select.POLLIN)
            if pid == 0:
                control.close()
                for watch, (_, other) in children.items():
                    os.close(watch)
                    other.close()
                _become(request, descriptors[2:])
            for descriptor in descriptors[2:]:
                os.close(descriptor)


def import_all() -> None:
    """Import the package, without what runs on devices, and the libraries that its functions
    import, and warm it up; nothing that starts threads.
    """
    import gc
    import pkgutil
    from importlib import import_module

    import provision

    for name in _LIBRARIES:
        import_module(name)
    for name in _GOOGLE_LIBRARIES:
        with suppress(ImportError):
            import_module(name)
    for module in pkgutil.walk_packages(provision.__path__, "provision."):
        first, _, last = module.name.removeprefix("provision.").rpartition(".")
        if first.split(".")[0] in _ON_DEVICE or last in (*_ON_DEVICE, "__main__"):
            continue
        if first == "sandbox" and "grpc" in last:
            continue
        import_module(module.name)
    # What is made at the first use of the spec, of the tables, of the pages and of the agent.
    from provision.assets import find_asset
    from provision.facts import load_facts
    from provision.field_types import StrictModel
    from provision.kinds import REGISTRY
    from provision.targets.colab.payload import build_payload, encode_payload
    from provision.verification import device_files
    from provision.views.report.html import template_environment

    for model in (*StrictModel.__subclasses__(), *(kind.model for kind in REGISTRY.kinds)):
        model.model_rebuild()
    load_facts()
    for page in find_asset("templates/report.html.j2").parent.glob("*.html.j2"):
        template_environment().get_template(page.name)
    device_files.probe_digest()
    programs = {
        "cell.pyz": device_files.notebook_zipapp(),
        "installer.pyz": device_files.installer_zipapp(),
        "probe.pyz": device_files.probe_zipapp(),
    }
    encode_payload(build_payload(b"{}", programs))
    gc.freeze()


def _report(watch: int, pid: int, status: socket.socket) -> None:
    """Send a child's wait status; its test may have gone on without it."""
    os.close(watch)
    _, code = os.waitpid(pid, 0)
    with status:
        try:
            status.send(str(code).encode())
        except OSError:
            return


def _become(request: dict[str, Any], streams: list[int]) -> NoReturn:
    """Be the program: in a child, set all that a started interpreter would have been given, and run
    the command line.
    """
    if request["session"]:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    for number in _SIGNALS:
        signal.signal(
            number,
            signal.SIG_IGN
            if number in request["ignored"]
            else signal.default_int_handler
            if number == signal.SIGINT
            else signal.SIG_DFL,
        )
    signal.pthread_sigmask(signal.SIG_SETMASK, request["mask"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.umask(request["umask"])
    for number, limit in zip(_LIMITS, request["limits"], strict=True):
        if resource.getrlimit(number) != tuple(limit):
            resource.setrlimit(number, limit)
    os.chdir(request["cwd"])
    import provision

    sys.argv = [str(Path(provision.__file__).parent / "__main__.py"), *request["words"]]
    sys.path[0] = request["cwd"]
    sys.stdin, sys.stdout, sys.stderr = (
        _opened(0, sys.stdin),
        _opened(1, sys.stdout),
        _opened(2, sys.stderr),
    )
    from provision.cli import run_cli

    code = run_cli(None, _registry())
    # As the interpreter ends, but for the 50 ms in which it takes apart what the server has
    # imported.
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = 120
    os._exit(code)


def _registry() -> Any:
    """Return the kinds of target that a test has named as MODULE:NAME, None for our own."""
    module, _, name = os.environ.pop(REGISTRY_VARIABLE, "").partition(":")
    return getattr(importlib.import_module(module), name) if module else None


def _opened(number: int, like: Any) -> io.TextIOWrapper:
    """Return a standard stream as the interpreter opens it (CPython's create_stdio)."""
    raw = io.FileIO(number, "r" if number == 0 else "w", closefd=False)
    raw.name = like.name
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED")) and number > 0
    buffer = (
        raw if unbuffered else io.BufferedReader(raw) if number == 0 else io.BufferedWriter(raw)
    )
    lines = number == 2 or raw.isatty()
    return io.TextIOWrapper(
        buffer,
        encoding=like.encoding,
        errors=like.errors,
        line_buffering=lines,
        write_through=unbuffered,
    )  # type: ignore[type-var]


def _readable(status: socket.socket, timeout: float | None) -> bool:
    # Not select, which refuses the descriptors of a process that has a thousand of them.
    poll = select.poll()
    poll.register(status, select.POLLIN)
    return bool(poll.poll(None if timeout is None else timeout * 1000))


def _at_startup(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_STARTUP)}


def _umask() -> int:
    now = os.umask(0o077)
    os.umask(now)
    return now
