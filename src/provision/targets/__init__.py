"""The drivers of the registered kinds of target, each imported on first use."""

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module

from provision.kinds import Kind, Registry
from provision.kinds.base import Refusal
from provision.spec import Spec
from provision.state import Ledger
from provision.targets.base import AnyDriver, Driver
from provision.targets.context import SandboxSources, TargetContext

__all__ = [
    "AnyDriver",
    "Driver",
    "Refusal",
    "SandboxSources",
    "TargetContext",
    "find_driver",
    "get_driver",
    "get_driver_of_parts",
    "get_recorded_driver",
    "load_driver",
    "load_drivers",
]


@cache
def load_driver(kind: Kind) -> AnyDriver | None:
    """Return the driver of a kind, None if targets of the kind cannot be made."""
    if not kind.driver:
        return None
    module, _, name = kind.driver.partition(":")
    driver: AnyDriver = getattr(import_module(module), name)()
    return driver


def load_drivers(registry: Registry) -> Iterator[AnyDriver]:
    """Yield the drivers of all kinds, that of the first kind last."""
    for kind in reversed(registry.kinds):
        driver = load_driver(kind)
        if driver is not None:
            yield driver


def find_driver(spec: Spec, target: str) -> AnyDriver | None:
    """Return the driver of a target of a spec, None if its kind cannot be made."""
    return load_driver(spec.registry.kind_of(spec.targets[target]))


def get_driver(context: TargetContext) -> AnyDriver:
    """Return the driver of a target."""
    driver = find_driver(context.spec, context.target)
    assert driver is not None  # noqa: S101 - a context exists for such targets only
    return driver


def get_driver_of_parts(parts: Iterable[str], registry: Registry) -> AnyDriver:
    """Return the driver that owns one of some recorded parts."""
    parts = tuple(parts)
    return next(driver for driver in load_drivers(registry) if any(map(driver.owns, parts)))


def get_recorded_driver(address: str, ledger: Ledger, registry: Registry) -> AnyDriver:
    """Return the driver of what is recorded or was begun at an address, not of the spec's kind."""
    intents = ledger.find_all_interrupted(address)
    parts = (*ledger.state.parts(address), *(intent.part for intent in intents))
    return get_driver_of_parts(parts, registry)
