"""Readings of the machines of a job: their reports, and a sum over the processes of all of them."""

from __future__ import annotations

from typing import Any

from ..context import ObserverContext
from ..model import Readings
from ..proofs.recipe import scratch_folder
from ..replicas import DeclaredReplicas
from .multi_gpu import rank_program, run_with_torchrun
from .tensors import device_of

_IDENTITY = ("environment", "packages", "python", "architecture", "driver", "gpus")
"""Keys of a machine's report that have one value in the whole job."""
_PATIENCE_S = 180.0


def _declared(context: ObserverContext) -> DeclaredReplicas:
    declared = context.expected.replicas
    assert declared is not None
    return declared


def _presence(context: ObserverContext) -> Readings:
    declared = _declared(context)
    return {
        "replicas.count": len(declared.reports),
        "replicas.names": sorted(str(report.get("name", "")) for report in declared.reports),
    }


def _sums(context: ObserverContext) -> Readings:
    declared = _declared(context)
    place, ranks = declared.rendezvous, context.expected.gpu_count or 1
    if place is None:
        return {"replicas.sums_ranks": None}
    folder = scratch_folder(context.scratch, "replicas")
    backend = "nccl" if device_of(context) == "cuda" else "gloo"
    # The static rendezvous: ranks follow the order of the machines, and the chief's name and port
    # are reachable from all of them. c10d takes another address and sorts by it.
    options = (
        f"--nnodes={declared.count}",
        f"--node-rank={place.rank}",
        f"--master-addr={place.chief}",
        f"--master-port={place.port}",
        f"--local-addr={place.address}",
        "--max-restarts=0",
    )
    run = run_with_torchrun(
        ranks,
        rank_program(backend, folder, ()),
        folder,
        context.environ,
        _PATIENCE_S,
        options=options,
        first_rank=place.rank * ranks,
    )
    return {
        "replicas.sums_wrong": sum(report["wrong"] for report in run.rank_reports),
        "replicas.sums_ranks": len(run.rank_reports),
        "replicas.sums_world": sorted({int(report["world"]) for report in run.rank_reports}),
        "replicas.sums_exit": run.code,
        "replicas.backend": backend,
        "_replicas.tail": run.tail,
    }


def _identity(context: ObserverContext) -> Readings:
    reports = _declared(context).reports
    values: dict[str, dict[str, Any]] = {}
    for key in _IDENTITY:
        by_name = {str(report.get("name", "")): report.get(key) for report in reports}
        if len({repr(value) for value in by_name.values()}) > 1:
            values[key] = by_name
    return {"replicas.differences": values, "replicas.compared": len(reports)}


def _machines(context: ObserverContext) -> Readings:
    reports = _declared(context).reports
    offsets = {
        str(report.get("name", "")): float(report["clock_offset_s"])
        for report in reports
        if report.get("clock_offset_s") is not None
    }
    return {
        "replicas.clock_offsets_s": offsets,
        "replicas.clock_spread_s": max(offsets.values()) - min(offsets.values())
        if len(offsets) == len(reports) and offsets
        else None,
        "replicas.shm_bytes": {
            str(report.get("name", "")): report.get("shm_bytes") for report in reports
        },
    }


OBSERVERS = {"G01": _presence, "G02": _sums, "G06": _identity, "G08": _machines}
