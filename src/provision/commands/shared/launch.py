"""Command that starts the declared training at a target."""

from __future__ import annotations

import shlex
from pathlib import PurePath

from provision.agent.probe.proofs.launch import Launch, launch_command
from provision.lock import Lock
from provision.spec import Spec


def build_launch(there: Spec, target: str, lock: Lock) -> Launch:
    """Return how training is started at a target, as its verification does."""
    gpus = 0 if there.gpu.is_none or there.gpu.type == "mps" else there.gpu.count
    held = any(
        "accelerate" in lock.versions(environment) for environment in lock.environments_of(target)
    )
    training = there.training
    return Launch(
        training.strategy,
        training.launcher,
        str(training.precision),
        gpus,
        there.framework() == "hf-trainer",
        held,
    )


def single_process_warning(launch: Launch, argv: tuple[str, ...]) -> str:
    """Return a warning if one process is started and the spec declares several; else ""."""
    name = PurePath(argv[0]).name
    if (
        launch.strategy == "none"
        or launch.effective_launcher == "python"
        or not name.startswith("python")
        or any(module in argv for module in _LAUNCHERS)
    ):
        return ""
    started = shlex.join(
        launch_command(
            launch, argv[1:] if len(argv) > 1 and argv[1].endswith(".py") else ("train.py",)
        )
    )
    return (
        f"strategy: {launch.strategy} needs a process for each device, and {name} starts one; "
        f"as declared it is started with: {started}"
    )


_LAUNCHERS = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch")
