"""The phases that set up a replica: programs, environment, code."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from ..core.code_files import ARCHIVE
from ..workbench.document import WorkbenchDocument
from ..workbench.environment import Environment
from ..workbench.machine_setup import wait_for_driver
from ..workbench.package_index import find_default_index
from .baked_environment import BakedEnvironment
from .document import WheelFolder
from .meeting import Meeting
from .status import ReplicaReporter
from .wheels import BucketWheels, read_glibc


def prepare_replica(
    environment: Environment,
    meeting: Meeting,
    reporter: ReplicaReporter,
    wheels: WheelFolder | None,
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
        _create_environment(environment, meeting, reporter, wheels)
    _create_folders(setup)
    if setup.code is not None:
        content = cloud.read_object(setup.code.address, setup.code.sha256)
        (instance.work / ARCHIVE).write_bytes(content)
        environment.unpack_code()
        reporter.log_line(f"code unpacked in {environment.code_folder}")
    return offset


def _create_environment(
    environment: Environment,
    meeting: Meeting,
    reporter: ReplicaReporter,
    wheels: WheelFolder | None,
) -> None:
    setup, instance, bucket = environment.document, environment.instance, None
    reporter.begin_phase("python")
    if wheels is not None:
        is_chief, folder = meeting.place.rank == 0, instance.work / "wheels"
        # All machines have the same account and find the same objects: one of them warns.
        outputs = (reporter.log_line, reporter.warn if is_chief else reporter.log_line)
        bucket = BucketWheels(meeting.cloud, wheels, is_chief, folder, *outputs, read_glibc())
        if setup.uv is not None and environment.find_present_uv() is None:
            index = setup.install.get("indexes", {}).get("pypi") or find_default_index()
            bucket.install_uv(setup.uv, environment.uv_folder(setup.uv), index)
    uv = environment.find_uv()
    python = environment.find_python(uv)
    reporter.log_line(f"uv {uv}, python {python}")
    reporter.begin_phase("packages")
    if bucket is not None:
        environment = replace(
            environment, document=replace(setup, install=bucket.bind(setup.install))
        )
    counts = environment.create(uv, python, lambda _: None)
    if bucket is not None:
        shutil.rmtree(bucket.work, ignore_errors=True)
    shown = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()) if count)
    reporter.log_line(f"packages: {shown or 'none'}")


def _create_folders(setup: WorkbenchDocument) -> None:
    """Make the declared folders; the probe reports those that cannot be written."""
    for path in setup.paths.values():
        try:
            os.makedirs(Path(path), exist_ok=True)
        except OSError:
            continue
