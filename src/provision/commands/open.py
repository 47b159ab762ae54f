"""Describes how a person reaches the resources of a spec's targets."""

from __future__ import annotations

from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.target_plans import missing_instance_error, refuse_unknown_kinds
from provision.effects.system import System
from provision.state import State
from provision.state_store import LocalStore
from provision.targets import find_driver
from provision.targets.capabilities import InstanceAccess, Openable


def describe_access(
    loaded: LoadedSpec, names: tuple[str, ...], system: System
) -> tuple[InstanceAccess, ...]:
    """Return the ways to reach each named target.

    Raises:
        Refused: nothing that can be opened is recorded for it, or it is gone.
    """
    refuse_unknown_kinds(loaded, names)
    state = LocalStore(loaded.folder, system).load_ledger().state
    return tuple(_describe_target(loaded, name, state, system) for name in names)


def _describe_target(loaded: LoadedSpec, name: str, state: State, system: System) -> InstanceAccess:
    address = f"{loaded.stem}/{name}"
    driver = find_driver(loaded.spec, name)
    if driver is not None and isinstance(driver, Openable):
        return driver.describe_access(address, state, loaded.path, system)
    raise missing_instance_error(address, loaded.command("apply", name))
