"""The stages of a verification, and the selection of its checks, which are in checks/."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .checks import CHECKS
from .expectations import Expectations
from .model import Check, SelectedCheck, Tier


@dataclass(frozen=True, slots=True)
class Stage:
    """A group of checks; without a GPU, stages with one `process` share it, as torch loads slowly.

    When a process dies, the stages after the one that killed it get a new one. With a GPU every
    stage has its own process: one CUDA error spoils all that follows in it. `timeout_s` allows
    for a first run without bytecode.
    """

    name: str
    title: str
    timeout_s: float
    process: str


STAGES: tuple[Stage, ...] = (
    Stage("host", "host and environment", 30, "plain"),
    Stage("driver", "driver and GPUs", 60, "plain"),
    Stage("packages", "installed packages", 120, "plain"),
    Stage("code", "code of the project", 120, "plain"),
    # Before anything that takes long, so that all machines come to it at nearly the same time.
    Stage("replicas", "machines of the job", 240, "replicas"),
    Stage("diagnosis", "NVIDIA diagnosis (DCGM)", 300, "diagnosis"),
    Stage("torch", "torch build and numerics", 240, "warm"),
    Stage("loaders", "data loaders", 240, "warm"),
    Stage("training", "training run", 420, "warm"),
    # After the training run, so that whatever a direct package changes on import cannot change what
    # was measured.
    Stage("imports", "imports of direct packages", 420, "warm"),
    Stage("resume", "resume in a fresh process", 300, "fresh"),
    Stage("launch", "one process per device", 420, "fresh"),
    Stage("framework", "device of jax and Keras", 300, "framework"),
    Stage("framework-training", "training run with jax or Keras", 420, "framework"),
    Stage("framework-resume", "resume with jax or Keras", 300, "framework-resume"),
    # The card's memory is filled, NCCL keeps threads, a compiler its workers: nothing else runs in
    # their processes.
    Stage("device", "GPU memory and speed", 300, "card"),
    Stage("collectives", "several GPUs", 300, "several"),
    Stage("compile", "torch.compile", 300, "compile"),
    Stage("rehearsal", "rehearsal of the declared model", 600, "rehearsal"),
    # As long as the verification may take: only the spec knows how long the command runs.
    Stage("command", "the declared command", 86400, "command"),
)

AS_THE_JOB = ("plain", "command")
"""Processes that get the variables of the user's job and no others."""
STAGE_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "WANDB_DISABLED": "true",
    "WANDB_MODE": "disabled",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
}
"""Set for all processes but those that see the environment as the user's job will. One
thread makes the tiny runs fast on a busy
machine; offline keeps a dead network from costing 23-47 s a call. All has to stand before the
first import.
"""


def select_checks(
    expected: Expectations, only: frozenset[str] = frozenset()
) -> tuple[SelectedCheck, ...]:
    """Return the checks of this tier in catalogue order; `only` names ids to keep.

    What they come after is kept with them.
    """
    kept = {name.split(":")[0] for name in only}
    for check in reversed(CHECKS):
        if check.id in kept:
            kept.update(check.after)
    tiers = list(Tier)
    chosen = [
        check
        for check in CHECKS
        if tiers.index(check.tier) <= tiers.index(expected.tier)
        and (check.id in kept if only else is_applicable(check, expected) or not check.quiet)
    ]
    return tuple(
        selected
        for check in chosen
        for selected in _instances(check, expected)
        if not only or not selected.subject or {selected.id, check.id} & only
    )


def known_check_ids(expected: Expectations) -> frozenset[str]:
    """Return every id that `only` may name."""
    return frozenset(check.id for check in CHECKS) | {check.id for check in select_checks(expected)}


def group_stages_by_process(expected: Expectations) -> list[list[Stage]]:
    """The stages in the order they run, grouped by the process they share."""
    groups: list[list[Stage]] = []
    for stage in STAGES:
        can_share = expected.gpu_type is None or stage.process == "plain"
        if can_share and groups and groups[-1][-1].process == stage.process:
            groups[-1].append(stage)
        else:
            groups.append([stage])
    return groups


def is_applicable(check: Check, expected: Expectations) -> bool:
    """Return whether the declared environment has everything the check needs."""
    return all(expected.meets(need) for need in check.needs)


def _instances(check: Check, expected: Expectations) -> Iterator[SelectedCheck]:
    required = is_applicable(check, expected) and check.required_by != ""
    if required and check.required_by != "always":
        required = expected.declares(check.required_by)
    if not check.per_direct_package:
        yield SelectedCheck(check, check.id, check.title, None, required)
        return
    for name in expected.direct:
        yield SelectedCheck(check, f"{check.id}:{name}", f"{check.title} {name}", name, required)
