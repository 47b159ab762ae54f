"""Runs the user's program on a replica, records what it uses, and sends its output."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.process import die_with_parent
from ..workbench.environment import Environment
from ..workbench.instance import PhaseFailed
from .cluster import ClusterPlace
from .document import ProgramRequest
from .program_output import OutputSender

_PYTHONS = ("python", "python3")
_OF_TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
"""Variables that torchrun sets for each process. Vertex AI sets them for machines."""
_FIRST_SEND_S, _SEND_S = 1.0, 15.0
"""Seconds between two parts of the output: short at first, as a program fails early."""
_SAVE_S = 12.0
"""Seconds that a program gets to save what it can when its machine is stopped. Our choice: of the
30 s of a Spot machine, GKE leaves containers the first 15 s, and the last output, the record and
the status of the replica are still to be written.
https://docs.cloud.google.com/kubernetes-engine/docs/concepts/spot-vms
"""
_SAMPLER_S = 5.0
_SAMPLER = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from provision_probe.probe.monitor.sampler import main; sys.exit(main())"
)
_HOOK = "provision_probe/probe/monitor/hook"


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """The end of a program: its exit code, or the signal that ended it.

    With `is_reclaimed`, the machine received SIGTERM: the program did not end by itself.
    """

    code: int | None
    signal: str | None
    is_reclaimed: bool = False

    @property
    def exit_code(self) -> int:
        """The exit code as a shell shows it."""
        if self.code is not None:
            return self.code
        return 128 + signal.Signals[self.signal].value if self.signal else 1


def build_command(
    request: ProgramRequest, place: ClusterPlace, python: str, path: str
) -> list[str]:
    """Return the command of a replica; raises PhaseFailed if its program does not exist.

    Several processes start through torchrun's static rendezvous: ranks follow the order of the
    machines, and a replaced machine finds the others again.
    """
    first, *arguments = request.argv
    if request.processes:
        options = [
            f"--nnodes={len(place.names)}",
            f"--nproc-per-node={request.processes}",
            f"--node-rank={place.rank}",
            f"--master-addr={place.chief}",
            f"--master-port={place.port}",
            f"--local-addr={place.address}",
            f"--max-restarts={request.restarts}",
        ]
        return [python, "-m", "torch.distributed.run", *options, *arguments]
    program = python if first in _PYTHONS else shutil.which(first, path=path)
    if program is None:
        raise PhaseFailed(f"the program {first} is neither in the environment nor in the image")
    return [program, *arguments]


def run_program(
    request: ProgramRequest,
    environment: Environment,
    place: ClusterPlace,
    secrets: Mapping[str, str],
    sender: OutputSender,
    record: Path,
) -> ProgramEnd:
    """Run the program to its end; its output goes to this process's output and to the bucket.

    Args:
        request: the program.
        environment: the environment that it runs in.
        place: this machine among the others.
        secrets: the values of secrets by variable.
        sender: sends the output.
        record: the file for the record of what it used.

    Raises:
        PhaseFailed: it cannot be started.
    """
    variables = build_variables(request, environment, secrets)
    command = build_command(request, place, environment.python, variables["PATH"])
    folder = environment.code_folder or environment.instance.user.home
    probe = environment.instance.work / "probe.pyz"
    with tempfile.TemporaryDirectory(prefix="provision-run-", ignore_cleanup_errors=True) as notes:
        hook = f"{probe}/{_HOOK}{os.pathsep}{variables.get('PYTHONPATH', '')}".rstrip(os.pathsep)
        watched = {**variables, "PYTHONPATH": hook, "PROVISION_RUN_NOTES": notes}
        sampler = _start_sampler(probe, request, variables, notes, record)
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=watched,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent,  # noqa: PLW1509
            )
        except OSError as error:
            _tell(sampler, None)
            raise PhaseFailed(f"cannot start {command[0]}: {error.strerror or error}") from None
        _tell(sampler, {"pid": process.pid})
        began = time.monotonic()
        end = _follow(process, sender)
        signalled = {"code": end.exit_code, "signal": end.signal, "largest_bytes": None}
        _tell(sampler, {**signalled, "seconds": time.monotonic() - began})
        _tell(sampler, None)
    return end


def build_variables(
    request: ProgramRequest, environment: Environment, secrets: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of the program: the container's, and those of the spec."""
    inherited = environment.instance.environ
    left_out = {"PROVISION_RUN", *(_OF_TORCHRUN if request.processes else ())}
    return {
        **{name: value for name, value in inherited.items() if name not in left_out},
        **environment.variables,
        **secrets,
        **environment.activation,
        # Output of a pipe would arrive in blocks only.
        "PYTHONUNBUFFERED": "1",
    }


def _follow(process: subprocess.Popen[bytes], sender: OutputSender) -> ProgramEnd:
    reader = threading.Thread(target=_read_output, args=(process, sender), daemon=True)
    reader.start()
    pause = _FIRST_SEND_S
    with _requested_stops() as stops:
        next_send, killed_at = time.monotonic() + pause, math.inf
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
            now = time.monotonic()
            if stops and killed_at == math.inf:
                process.terminate()
                killed_at, next_send = now + _SAVE_S, now + _FIRST_SEND_S
            if now >= killed_at:
                process.kill()
            elif now >= next_send:
                sender.send()
                # A machine that is stopped may be killed at any time.
                pause = _FIRST_SEND_S if stops else min(pause * 1.5, _SEND_S)
                next_send = time.monotonic() + pause
        code = process.wait()
    # A process that the program left may hold the pipe open.
    reader.join(2)
    sender.send(everything=True)
    if code >= 0:
        return ProgramEnd(code, None, bool(stops))
    return ProgramEnd(None, signal.Signals(-code).name, bool(stops))


def _read_output(process: subprocess.Popen[bytes], sender: OutputSender) -> None:
    assert process.stdout is not None
    while content := os.read(process.stdout.fileno(), 65536):
        sender.add(content)
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


@contextmanager
def _requested_stops() -> Iterator[list[int]]:
    """Collect SIGTERM, by which a machine that is reclaimed or cancelled is stopped."""
    received: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)


def _start_sampler(
    probe: Path,
    request: ProgramRequest,
    variables: Mapping[str, str],
    notes: str,
    record: Path,
) -> subprocess.Popen[bytes] | None:
    """Start the process that records what the program uses; None if nothing is recorded."""
    if not request.about:
        return None
    try:
        sampler = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _SAMPLER, str(probe)],
            env=dict(variables),
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None
    _tell(sampler, {**request.about, "out": str(record), "notes": notes})
    return sampler


def _tell(sampler: subprocess.Popen[bytes] | None, message: Mapping[str, Any] | None) -> None:
    """Send a message to the sampler; None lets it write its record and end."""
    if sampler is None or sampler.stdin is None:
        return
    with suppress(OSError):
        if message is not None:
            sampler.stdin.write(json.dumps(message).encode() + b"\n")
            sampler.stdin.flush()
            return
        sampler.stdin.close()
    try:
        sampler.wait(_SAMPLER_S)
    except subprocess.TimeoutExpired:
        sampler.kill()
