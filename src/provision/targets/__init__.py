"""The registry of drivers: one line per kind of target."""

from collections.abc import Mapping

from provision.kinds.base import Refusal
from provision.state import Ledger
from provision.targets.base import AnyDriver, Driver
from provision.targets.colab.driver import ColabDriver
from provision.targets.context import SandboxSources, TargetContext
from provision.targets.local.driver import LocalDriver
from provision.targets.workbench.driver import WorkbenchDriver

DRIVERS: Mapping[str, AnyDriver] = {
    "colab": ColabDriver(),
    "workbench": WorkbenchDriver(),
    "local": LocalDriver(),
}
"""Drivers by kind. The order is that in which a recorded part is attributed: `local` comes last, as
it owns every part that no other kind claims."""

__all__ = [
    "DRIVERS",
    "AnyDriver",
    "Driver",
    "Refusal",
    "SandboxSources",
    "TargetContext",
    "get_driver",
    "get_driver_of_part",
    "get_recorded_driver",
]


def get_driver(context: TargetContext) -> AnyDriver:
    """Return the driver of a target."""
    return DRIVERS[context.spec.targets[context.target].kind]


def get_driver_of_part(part: str) -> AnyDriver:
    """Return the driver that owns a part."""
    return next(driver for driver in DRIVERS.values() if driver.owns(part))


def get_recorded_driver(address: str, ledger: Ledger) -> AnyDriver:
    """Return the driver of what is recorded or was begun at an address, whatever the spec says."""
    parts = {*ledger.state.parts(address)}
    parts |= {intent.part for intent in ledger.find_all_interrupted(address)}
    return next(driver for driver in DRIVERS.values() if any(map(driver.owns, parts)))
