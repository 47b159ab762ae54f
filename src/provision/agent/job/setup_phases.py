"""The phases that set up a replica: programs, environment, code."""

from __future__ import annotations

import os
from pathlib import Path

from ..core.code_files import ARCHIVE
from ..workbench.document import WorkbenchDocument
from ..workbench.environment import Environment
from ..workbench.machine_setup import wait_for_driver
from .baked_environment import BakedEnvironment
from .meeting import Meeting
from .status import ReplicaReporter


def prepare_replica(
    environment: Environment, meeting: Meeting, reporter: ReplicaReporter
) -> float | None:
    """Create the environment unless the image contains it; return the offset of this clock.

    Raises:
        PhaseFailed: a step failed.
        ServiceCallFailed: the bucket cannot be read or written.
    """
    setup, instance, cloud = environment.document, environment.instance, meeting.cloud
    reporter.begin_phase("start")
    offset = meeting.measure_clock()
    for name, file in (("installer.pyz", setup.installer), ("probe.pyz", setup.probe)):
        (instance.work / name).write_bytes(cloud.read_object(file.address, file.sha256))
    if setup.gpu is not None:
        reporter.begin_phase("driver")
        reporter.log_line(f"driver: {wait_for_driver(setup, instance)}")
    if isinstance(environment, BakedEnvironment):
        reporter.log_line(f"the packages are those of {environment.python}; none is installed")
    elif environment.is_complete():
        reporter.log_line("the environment of an earlier start is complete")
    else:
        _create_environment(environment, reporter)
    _create_folders(setup)
    if setup.code is not None:
        content = cloud.read_object(setup.code.address, setup.code.sha256)
        (instance.work / ARCHIVE).write_bytes(content)
        environment.unpack_code()
        reporter.log_line(f"code unpacked in {environment.code_folder}")
    return offset


def _create_environment(environment: Environment, reporter: ReplicaReporter) -> None:
    reporter.begin_phase("python")
    uv = environment.find_uv()
    python = environment.find_python(uv)
    reporter.log_line(f"uv {uv}, python {python}")
    reporter.begin_phase("packages")
    counts = environment.create(uv, python, lambda _: None)
    shown = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()) if count)
    reporter.log_line(f"packages: {shown or 'none'}")


def _create_folders(setup: WorkbenchDocument) -> None:
    """Make the declared folders; the probe reports those that cannot be written."""
    for path in setup.paths.values():
        try:
            os.makedirs(Path(path), exist_ok=True)
        except OSError:
            continue
