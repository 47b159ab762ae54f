"""All checks as data, a module for each subject, in the order in which they run."""

from __future__ import annotations

from ..model import Check
from . import (
    device,
    driver,
    frameworks,
    host,
    job,
    loaders,
    multi_gpu,
    numerics,
    packages,
    rehearsal,
    replicas,
    torch_build,
    torch_compile,
    training,
)

CHECKS: tuple[Check, ...] = (
    *host.CHECKS,
    *driver.CHECKS,
    *packages.CHECKS,
    *job.CODE_CHECKS,
    *replicas.CHECKS,
    *torch_build.CHECKS,
    *numerics.CHECKS,
    *packages.TORCH_CHECKS,
    *device.CHECKS,
    *loaders.CHECKS,
    *training.CHECKS,
    *frameworks.CHECKS,
    *multi_gpu.CHECKS,
    *torch_compile.CHECKS,
    *rehearsal.CHECKS,
    *job.COMMAND_CHECKS,
)
