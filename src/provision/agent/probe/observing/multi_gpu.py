"""Lets all cards sum numbers together, one process each; a run that hangs is ended."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..context import ObserverContext
from ..model import Environ, Readings
from ..own_code import own_command
from ..proofs.allreduce import read_rank_reports, read_steps, run_alone
from ..proofs.recipe import scratch_folder
from .tensors import device_of

_PATIENCE_S = 60.0
_GRACE_S = 10.0
_TAIL = 400
_MESSAGES = (1 << 30, 4 << 30)
_ALONE = ("--standalone", "--local-addr=127.0.0.1")
"""Without an address torchrun resolves the machine's name, which not every machine can
(pytorch#150532).
"""


@dataclass(frozen=True, slots=True)
class ProcessGroupRun:
    """Result of several processes: exit code (None: it hung), ranks' notes, end of the output.

    `steps` has the last step of each rank (`proofs.allreduce.STEPS`; None: not even its card).
    """

    code: int | None
    rank_reports: tuple[Readings, ...]
    tail: str
    steps: tuple[str | None, ...] = ()


def _alone(context: ObserverContext) -> Readings:
    return {
        "several.alone_wrong": run_alone("nccl", context.scratch)
        if device_of(context) == "cuda"
        else None
    }


def _sums(context: ObserverContext) -> Readings:
    return readings_of("sums", _ran(context, "sums", ()))


def _bandwidth(context: ObserverContext) -> Readings:
    run = _ran(context, "bandwidth", _MESSAGES)
    best = (
        min((max(report["bus_gb_s"]) for report in run.rank_reports), default=None)
        if run and len(run.rank_reports) == context.expected.gpu_count
        else None
    )
    return {"several.bus_gb_s": best, **readings_of("bandwidth", run)}


def _ran(context: ObserverContext, name: str, sizes: Sequence[int]) -> ProcessGroupRun | None:
    if device_of(context) != "cuda":
        return None
    folder = scratch_folder(context.scratch, name)
    return run_with_torchrun(
        context.expected.gpu_count,
        rank_program("nccl", folder, sizes),
        folder,
        context.environ,
        _PATIENCE_S,
    )


def readings_of(name: str, run: ProcessGroupRun | None) -> Readings:
    """Return what a run of several processes means as readings."""
    if run is None:
        return {f"several.{name}_wrong": None}
    return {
        f"several.{name}_wrong": sum(report["wrong"] for report in run.rank_reports),
        f"several.{name}_wrong_ranks": [
            rank for rank, report in enumerate(run.rank_reports) if report["wrong"]
        ],
        f"several.{name}_ranks": len(run.rank_reports),
        f"several.{name}_exit": run.code,
        f"several.{name}_steps": list(run.steps),
        f"_several.{name}_tail": run.tail,
    }


def rank_program(backend: str, folder: Path, sizes: Sequence[int]) -> list[str]:
    """Return the arguments after torchrun's own that start this probe as a rank."""
    return [*own_command(), "rank", backend, str(folder), *map(str, sizes)]


def run_with_torchrun(
    ranks: int,
    program: Sequence[str],
    folder: Path,
    environ: Environ,
    patience_s: float,
    *,
    options: Sequence[str] = _ALONE,
    first_rank: int = 0,
) -> ProcessGroupRun:
    """Run a program in several processes with torchrun; end it after `patience_s`.

    `options` tell torchrun where the processes of several machines meet; `first_rank` is then the
    first one on this machine.
    """
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        *options,
        "--nproc_per_node",
        str(ranks),
        *program,
    ]
    log = folder / "together.log"
    with open(log, "wb") as output:
        # The group stays ours: whoever ends this stage ends torchrun with it, and the ranks end
        # with torchrun.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={"NCCL_DEBUG": "WARN", **environ},
        )
        code = _waited(process, patience_s)
    return ProcessGroupRun(
        code,
        tuple(read_rank_reports(folder, ranks, first_rank)),
        _tail(log),
        tuple(read_steps(folder, ranks, first_rank)),
    )


def _waited(process: subprocess.Popen[bytes], patience_s: float) -> int | None:
    try:
        return process.wait(patience_s)
    except subprocess.TimeoutExpired:
        pass
    # torchrun ends its ranks on SIGTERM.
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return None


def _tail(log: Path) -> str:
    """Return the last lines that NCCL wrote, or the last lines at all where it wrote none."""
    lines = [
        line
        for line in log.read_bytes()[-65536:].decode("utf-8", "replace").splitlines()
        if line.strip()
    ]
    chosen = (
        [line for line in lines if "NCCL" in line]
        or [line for line in lines if "Error" in line]
        or lines
    )
    return "; ".join(chosen)[-_TAIL:]


OBSERVERS = {"C01": _alone, "C02": _sums, "C03": _bandwidth}
