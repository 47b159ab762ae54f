"""Cases of judging the machines of a job."""

from __future__ import annotations

from typing import Any

from tests.agent.probe.rows import CPU, GIB, L4, Row

NAMES = ["workerpool0-0", "workerpool1-0"]
JOB = {
    "count": 2,
    "names": NAMES,
    "reports": [{"name": name} for name in NAMES],
    "rendezvous": {"rank": 0, "chief": "chief", "port": 3333, "address": "10.0.0.1"},
}
TWO: dict[str, Any] = {**CPU, "replicas": JOB}
TWO_L4: dict[str, Any] = {**L4, "gpu": {"type": "L4", "count": 2}, "replicas": JOB}
LARGE_SHM = {**TWO, "requires__shm_bytes": GIB}
THERE = {"replicas.count": 2, "replicas.names": NAMES}
SUMS = {
    "replicas.sums_wrong": 0,
    "replicas.sums_ranks": 1,
    "replicas.sums_world": [2],
    "replicas.sums_exit": 0,
    "replicas.backend": "gloo",
}
CLOCKS = {
    "replicas.clock_spread_s": 0.02,
    "replicas.shm_bytes": {"workerpool0-0": 2 * GIB, "workerpool1-0": 2 * GIB},
}
SMALL = {**CLOCKS, "replicas.shm_bytes": {"workerpool0-0": 2 * GIB, "workerpool1-0": 2**26}}
SAME = {"replicas.differences": {}, "replicas.compared": 2}
PACE = {"replicas.bus_gb_s": 0.4, "replicas.backend": "gloo"}
FOUR: dict[str, Any] = {**TWO, "replicas": {**JOB, "count": 4}}
RING = (
    "workerpool0-0 workerpool1-0",
    "workerpool1-0 workerpool1-1",
    "workerpool1-1 workerpool1-2",
    "workerpool1-2 workerpool0-0",
)
LINKS = {"replicas.links_mb_s": dict(zip(RING, (500.0, 450.0, 480.0, 520.0), strict=True))}
SLOW = {"replicas.links_mb_s": dict(zip(RING, (500.0, 24.0, 27.0, 520.0), strict=True))}
ONE_LINK = {"replicas.links_mb_s": dict(zip(RING, (500.0, 24.0, 510.0, 520.0), strict=True))}
TRAINER: dict[str, Any] = {
    **TWO,
    "packages": [{"name": "torch", "version": "2.13.0"}, {"name": "transformers", "version": "5"}],
}
DDP: dict[str, Any] = {
    "training__method": "full",
    "training__model": None,
    "training__batch_size": None,
    "training__sequence_length": None,
    "training__torch_compile": False,
    "training__strategy": "ddp",
    "training__launcher": "auto",
}
TRAINER_DDP = {**TRAINER, **DDP}
STEP = {"loss": 4.9, "weights": ["a", "a"]}
STEPS = {
    "ddp": {**STEP, "wrapper": "DistributedDataParallel, Joinable", "mode": "distributed"},
    "fsdp": {**STEP, "error": 1e-8},
}


def trained(exit_code: int | None = 0, **changes: Any) -> dict[str, Any]:
    """Readings of one process; changes merge with a strategy's result."""
    note = dict(changes)
    for name, result in STEPS.items():
        note[name] = {**result, **changes.get(name, {})}
    return {"replicas.training": [note], "replicas.training_exit": exit_code}


SHARED = {"replicas.shared_path": "/gcs/b/out", "replicas.unread_marks": []}
UNSHARED = {**SHARED, "replicas.unread_marks": ["workerpool1-0"]}
DRIVERS = {"driver": {"workerpool0-0": ["580.82.07"], "workerpool1-0": ["570.10"]}}
NOBODY = {"replicas.count": 0, "replicas.names": []}

OF_REPLICAS = [
    Row("G01", "pass", THERE, TWO, "all 2 machines are present"),
    Row(
        "G01",
        "fail",
        {"replicas.count": 1, "replicas.names": NAMES[:1]},
        TWO,
        "1 of 2 machines are present: workerpool1-0 did not report",
    ),
    Row(
        "G01",
        "fail",
        {"replicas.count": 2, "replicas.names": [NAMES[0], NAMES[0]]},
        TWO,
        "1 of 2 machines are present",
    ),
    Row("G01", "unknown", NOBODY, {**CPU, "replicas": {"count": 2}}, "does not run in a job"),
    Row("G02", "pass", SUMS, TWO, "all-reduce results of 2 processes on 2 machines are exact"),
    Row("G02", "fail", {**SUMS, "replicas.sums_wrong": 7}, TWO, "7 all-reduce results across 2"),
    Row("G02", "fail", {**SUMS, "replicas.sums_world": [1]}, TWO, "expected 2"),
    Row(
        "G02",
        "fail",
        {**SUMS, "replicas.sums_ranks": 0, "replicas.sums_exit": None},
        TWO,
        "across 2 machines hangs: 0 of 1 processes on this machine finished",
    ),
    Row("G02", "fail", {**SUMS, "replicas.sums_exit": 1}, TWO, "ended with exit code 1"),
    Row("G02", "fail", SUMS, TWO_L4, "1 of 2 processes on this machine finished"),
    Row("G02", "unknown", {"replicas.sums_ranks": None}, TWO, "does not run in a job"),
    Row("G03", "pass", PACE, TWO, "0.4 GB/s of bus bandwidth between 2 machines (gloo)"),
    Row("G03", "warn", {**PACE, "replicas.bus_gb_s": 0.0123}, TWO, "0.0123 GB/s of bus"),
    Row("G03", "unknown", {**PACE, "replicas.bus_gb_s": None}, TWO, "did not finish (see G02)"),
    Row("G03", "skip", PACE, {**TWO, "replicas": {**JOB, "count": 1}}, "there is one machine"),
    Row("G04", "pass", LINKS, FOUR, "of the 4 machines has a link that carries 480 MB/s or more"),
    Row("G04", "fail", SLOW, FOUR, "workerpool1-1: every link is slow (workerpool0-0 and"),
    Row("G04", "pass", ONE_LINK, FOUR, "carries 500 MB/s or more"),
    Row("G04", "unknown", {"replicas.links_mb_s": None}, FOUR, "did not finish (see G02)"),
    Row("G04", "skip", {"replicas.links_mb_s": {}}, TWO, "among three or more"),
    Row("G05", "pass", trained(), TRAINER, "a step with ddp and with fsdp leaves 2 processes with"),
    Row(
        "G05",
        "pass",
        trained(fsdp={"reason": "torch 2.5.1 has no fully_shard"}),
        TRAINER,
        "a step with ddp leaves 2 processes with equal weights; fsdp was not tested: torch 2.5.1",
    ),
    Row("G05", "fail", trained(ddp={"weights": ["a", "b"]}), TRAINER, "weights of rank 1 differ"),
    Row("G05", "fail", trained(ddp={"weights": ["a"]}), TRAINER, "1 process trained instead of 2"),
    Row("G05", "fail", trained(ddp={"wrapper": ""}), TRAINER, "wraps the model in nothing"),
    Row(
        "G05",
        "fail",
        trained(ddp={"mode": "not_parallel"}),
        TRAINER_DDP,
        "machines alone: its parallel mode is not_parallel",
    ),
    Row("G05", "pass", trained(ddp={"mode": "not_parallel"}), TRAINER, "leaves 2 processes"),
    Row("G05", "pass", trained(), TRAINER_DDP, "leaves 2 processes"),
    Row("G05", "fail", trained(ddp={"loss": "nan"}), TRAINER, "the loss with ddp is nan"),
    Row("G05", "fail", trained(fsdp={"error": 0.31}), TRAINER, "of a single process by 0.31"),
    Row("G05", "fail", trained(fsdp={"error": "nan"}), TRAINER, "of a single process by nan"),
    Row("G05", "fail", trained(error="E: closed"), TRAINER, "machines fails: E: closed"),
    Row(
        "G05",
        "fail",
        {**trained(None), "replicas.training": []},
        TRAINER,
        "a training step across 2 machines hangs",
    ),
    Row("G05", "unknown", {"replicas.training": None}, TRAINER, "did not finish (see G02)"),
    Row("G05", "skip", trained(), TWO, "transformers is not in the lock"),
    Row("G05", "skip", trained(), {**TRAINER, "replicas": {**JOB, "count": 1}}, "is one machine"),
    Row("G07", "pass", SHARED, TWO, "/gcs/b/out: this machine can read what each of the 2 wrote"),
    Row("G07", "fail", UNSHARED, TWO, "cannot read what workerpool1-0 wrote"),
    Row("G07", "skip", {**SHARED, "replicas.shared_path": None}, TWO, "neither `paths.check"),
    Row("G06", "pass", SAME, TWO, "environment, driver and GPUs are the same"),
    Row("G06", "fail", {**SAME, "replicas.differences": DRIVERS}, TWO, "differ in driver"),
    Row("G06", "unknown", {**SAME, "replicas.compared": 0}, TWO, "does not run in a job"),
    Row("G08", "pass", CLOCKS, TWO, "clocks differ by 0.02 s; /dev/shm is 2 GiB or more"),
    Row("G08", "fail", {**CLOCKS, "replicas.clock_spread_s": 3.5}, TWO, "differ by 3.5 s"),
    Row("G08", "pass", SMALL, TWO, "/dev/shm is 64 MiB or more"),
    Row("G08", "fail", SMALL, LARGE_SHM, "/dev/shm on workerpool1-0 is smaller than 1 GiB"),
    Row("G08", "unknown", {**CLOCKS, "replicas.clock_spread_s": None}, TWO, "not every machine"),
]
