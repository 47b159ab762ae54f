"""Readings of the machines of a job: their reports, and a sum over the processes of all of them."""

from __future__ import annotations

import os
from typing import Any

from ...core.shared_marks import find_shared_path, mark_folder, mark_text
from ..context import ObserverContext
from ..model import Proof, Readings
from ..proofs.machine_links import list_links
from ..proofs.machine_training import read_training_notes, write_training_task
from ..proofs.recipe import Recipe, prepare_environment, scratch_folder
from ..replicas import DeclaredReplicas
from .multi_gpu import rank_program, run_with_torchrun
from .tensors import device_of

_IDENTITY = ("environment", "packages", "python", "architecture", "driver", "gpus")
"""Keys of a machine's report that have one value in the whole job."""
_SIZES = {"gloo": (1 << 20, 1 << 22), "nccl": (1 << 20, 1 << 28)}
"""Bytes of the messages whose bandwidth is measured; the largest of NCCL keeps a network busy."""
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
    first, folder = place.rank * ranks, scratch_folder(context.scratch, "replicas")
    backend = "nccl" if device_of(context) == "cuda" else "gloo"
    environ = dict(context.environ)
    if context.expected.proof is Proof.HF_TRAINER and declared.count > 1:
        prepare_environment(environ, context.expected, context.scratch, every_device=True)
        write_training_task(folder, Recipe.of(context.expected))
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
        rank_program(backend, folder, _SIZES[backend]),
        folder,
        environ,
        _PATIENCE_S,
        options=options,
        first_rank=first,
    )
    context.memo["replicas.run"] = run
    context.memo["replicas.notes"] = read_training_notes(folder, ranks, first)
    return {
        "replicas.sums_wrong": sum(report["wrong"] for report in run.rank_reports),
        "replicas.sums_ranks": len(run.rank_reports),
        "replicas.sums_world": sorted({int(report["world"]) for report in run.rank_reports}),
        # Once the sums are written, the rest of the processes' work is G05's.
        "replicas.sums_exit": 0 if len(run.rank_reports) == ranks else run.code,
        "replicas.backend": backend,
        "_replicas.tail": run.tail,
    }


def _bandwidth(context: ObserverContext) -> Readings:
    run = context.memo.get("replicas.run")
    best = [max(report["bus_gb_s"]) for report in run.rank_reports] if run else []
    return {"replicas.bus_gb_s": min(best, default=None)}


def _links(context: ObserverContext) -> Readings:
    declared, run = _declared(context), context.memo.get("replicas.run")
    reports = run.rank_reports if run else ()
    speeds = reports[0].get("links_mb_s") if reports else None
    links = list_links(declared.count)
    if speeds is None or len(speeds) != len(links):
        return {"replicas.links_mb_s": None}
    names = declared.names
    return {
        "replicas.links_mb_s": {
            f"{names[first]} {names[second]}": round(speed, 1)
            for (first, second), speed in zip(links, speeds, strict=True)
        }
    }


def _training(context: ObserverContext) -> Readings:
    run, notes = context.memo.get("replicas.run"), context.memo.get("replicas.notes")
    return {
        "replicas.training": notes,
        "replicas.training_exit": run.code if run else None,
        "_replicas.training_tail": run.tail if run else "",
    }


def _marks(context: ObserverContext) -> Readings:
    """Read the file that each machine wrote before the meeting, below the folder of checkpoints."""
    expected, declared = context.expected, _declared(context)
    path = find_shared_path(expected.paths)
    if path is None or declared.rendezvous is None:
        return {"replicas.shared_path": None, "replicas.unread_marks": []}
    folder = mark_folder(path, expected.nonce)
    unread = []
    for replica in declared.names:
        try:
            with open(os.path.join(folder, replica), encoding="utf-8") as file:
                if file.read() != mark_text(expected.nonce, replica):
                    unread.append(replica)
        except (OSError, ValueError):
            unread.append(replica)
    return {"replicas.shared_path": path, "replicas.unread_marks": unread}


def _identity(context: ObserverContext) -> Readings:
    reports = _declared(context).reports
    values: dict[str, dict[str, Any]] = {}
    for key in _IDENTITY:
        # Not by name: two machines may have the same one (G01).
        if len({repr(report.get(key)) for report in reports}) > 1:
            values[key] = {str(report.get("name", "")): report.get(key) for report in reports}
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


OBSERVERS = {
    "G01": _presence,
    "G02": _sums,
    "G03": _bandwidth,
    "G04": _links,
    "G05": _training,
    "G06": _identity,
    "G07": _marks,
    "G08": _machines,
}
