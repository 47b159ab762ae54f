"""All checks of a verification, as data, a room for each thing that is looked at; the order here is the order in which they are asked."""

from __future__ import annotations

from ..values import Check
from . import compiling, device, driver, host, loaders, numerics, packages, rehearsal, several, torchbuild, training

CHECKS: tuple[Check, ...] = (
    *host.CHECKS,
    *driver.CHECKS,
    *packages.CHECKS,
    *torchbuild.CHECKS,
    *numerics.CHECKS,
    *packages.TORCH_CHECKS,
    *device.CHECKS,
    *loaders.CHECKS,
    *training.CHECKS,
    *several.CHECKS,
    *compiling.CHECKS,
    *rehearsal.CHECKS,
)
