"""Command that starts the declared training at a target."""

from __future__ import annotations

import shlex
from pathlib import PurePath

from provision.agent.probe.proofs.launch import Launch, launch_command
from provision.lock import Lock
from provision.spec import Spec


def build_launch(spec: Spec, target: str, lock: Lock) -> Launch:
    """Return the launch of the training that a target's spec declares, as verification has it."""
    environments, training = lock.environments_of(target), spec.training
    return Launch(
        training.strategy,
        training.launcher,
        str(training.precision),
        0 if spec.gpu.is_none or spec.gpu.type == "mps" else spec.gpu.count,
        spec.framework() == "hf-trainer",
        any("accelerate" in lock.versions(environment) for environment in environments),
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
    script = argv[1:] if len(argv) > 1 and argv[1].endswith(".py") else ("train.py",)
    return (
        f"`strategy: {launch.strategy}` needs one process for each device, but {name} starts "
        "only one; the launch command for the spec is: "
        f"{shlex.join(launch_command(launch, script))}"
    )


_LAUNCHERS = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch")
