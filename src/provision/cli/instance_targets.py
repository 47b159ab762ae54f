"""The targets of a spec that have an instance."""

from __future__ import annotations

import shlex

from provision.commands.attach import list_instance_targets
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.target_plans import select_targets
from provision.effects.system import System
from provision.errors import Refused


def select_instance_targets(
    loaded: LoadedSpec, names: tuple[str, ...], system: System
) -> tuple[str, ...]:
    """Return the named targets, or all with a recorded instance.

    Raises:
        Refused: no instance is recorded.
    """
    if names:
        return select_targets(loaded, names, everything=False)
    recorded = list_instance_targets(loaded, system)
    if not recorded:
        option = " --sandbox" if loaded.sandbox_sources is not None else ""
        raise Refused(
            f"no instance is recorded for {loaded.stem}",
            hint=f"make one with `provision apply {shlex.quote(str(loaded.path))}{option}`",
        )
    return recorded
