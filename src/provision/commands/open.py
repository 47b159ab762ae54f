"""Describes how a person reaches the resources of a spec's targets."""

from __future__ import annotations

from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.target_plans import (
    list_recorded_targets,
    missing_instance_error,
    refuse_unknown_kinds,
)
from provision.commands.shared.target_selection import select_targets
from provision.effects.system import Reader, System
from provision.errors import Refused
from provision.state import State
from provision.state_store import LocalStore
from provision.targets import find_driver
from provision.targets.capabilities import InstanceAccess, Openable


def describe_access(
    loaded: LoadedSpec, names: tuple[str, ...], system: System
) -> tuple[InstanceAccess, ...]:
    """Return the ways to reach each named target, or all with a recorded instance.

    Raises:
        Refused: nothing that can be opened is recorded for it, or it is gone.
    """
    state = LocalStore(loaded.folder, system).load_ledger().state
    selected = _select_openable(loaded, names, state)
    refuse_unknown_kinds(loaded, selected)
    return tuple(_describe_target(loaded, name, state, system) for name in selected)


def _select_openable(loaded: LoadedSpec, names: tuple[str, ...], state: State) -> tuple[str, ...]:
    if names or len(loaded.spec.targets) == 1:
        return select_targets(loaded, names, everything=False)
    recorded = list_recorded_targets(loaded, state, lambda driver: isinstance(driver, Openable))
    if not recorded:
        raise missing_instance_error(loaded.stem, loaded.command("apply"))
    return recorded


def _describe_target(loaded: LoadedSpec, name: str, state: State, reader: Reader) -> InstanceAccess:
    address = f"{loaded.stem}/{name}"
    driver = find_driver(loaded.spec, name)
    if driver is not None and isinstance(driver, Openable):
        return driver.describe_access(address, state, loaded.path, reader)
    hint = ""
    if driver is not None:
        hint = driver.explain_use()
        if driver.location(address, loaded.folder, state) is None:
            hint += f"; create it first with `{loaded.command('apply', name)}`"
    kind = loaded.spec.targets[name].kind
    raise Refused(
        f"{address} cannot be opened",
        why=f"a target of kind {kind} has no address for a browser or a shell",
        hint=hint,
    )
