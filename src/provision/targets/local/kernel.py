"""Plans the Jupyter kernel of a local environment."""

from __future__ import annotations

import json

from provision.effects.local import MakeFolder, WriteFile
from provision.effects.system import Effect
from provision.plan import Action, Operation
from provision.spec import LocalTarget
from provision.targets.context import TargetContext, declared_variables
from provision.targets.local.conda_prefix import uses_conda
from provision.targets.local.kernel_launcher import build_kernel_argv
from provision.targets.local.observation import LocalObservation
from provision.targets.local.paths import stable_path
from provision.targets.recorded_paths import build_kernel_name, plan_kernel_removal

KERNEL_PART = "kernel"


def plan_kernel(context: TargetContext, observed: LocalObservation) -> Action | None:
    """Return the action on the kernel; None if it neither exists nor is declared."""
    name = build_kernel_name(context.address, context.folder)
    title = f"Jupyter kernel {name}"
    target = context.spec.targets[context.target]
    if not isinstance(target, LocalTarget) or not target.kernel:
        if observed.recorded_kernel is None:
            return None
        removal = plan_kernel_removal(observed.recorded_kernel, context.address)
        reason = "the spec no longer asks for it"
        return Action(Operation.DESTROY, context.address, KERNEL_PART, title, reason, removal)
    text = _build_kernel_file(context)
    folder = observed.kernel_folder
    record = {"title": title, "name": name, "outside": [str(folder)]}
    recorded = observed.recorded_kernel or {}
    if observed.kernel_text == text and recorded.get("outside") == record["outside"]:
        reason = "it is as declared"
        return Action(Operation.KEEP, context.address, KERNEL_PART, title, reason, (), record)
    elsewhere = (
        effect for effect in plan_kernel_removal(recorded, context.address) if effect.path != folder
    )
    effects: tuple[Effect, ...] = (
        *elsewhere,
        MakeFolder(folder),
        WriteFile(folder / "kernel.json", text),
    )
    operation = Operation.CREATE if observed.kernel_text is None else Operation.CHANGE
    reason = "the spec says kernel: true"
    return Action(operation, context.address, KERNEL_PART, title, reason, effects, record)


def _build_kernel_file(context: TargetContext) -> str:
    # Jupyter replaces ${NAME} from its own environment, so no secret is written to disk. A $ in a
    # declared value is doubled to stay one.
    declared = {
        name: value.replace("$", "$$") for name, value in declared_variables(context.spec).items()
    }
    secrets = {
        name: f"${{{reference.env}}}"
        for name, reference in context.spec.secrets.items()
        if reference.env
    }
    prefix = stable_path(context)
    prefix_variable = "CONDA_PREFIX" if uses_conda(context) else "VIRTUAL_ENV"
    document = {
        "argv": build_kernel_argv(str(prefix / "bin/python")),
        "display_name": f"{context.spec.name} ({context.target})",
        "language": "python",
        "env": {
            **declared,
            **secrets,
            prefix_variable: str(prefix),
            "PATH": f"{prefix / 'bin'}:${{PATH}}",
        },
        "metadata": {"provision": {"environment_digest": context.environment.digest}},
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"
