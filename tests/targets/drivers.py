"""The drivers of this version by the names of their kinds."""

from __future__ import annotations

from provision.kinds import REGISTRY
from provision.targets import load_driver

DRIVERS = {
    kind.name: driver for kind in REGISTRY.kinds if (driver := load_driver(kind)) is not None
}
