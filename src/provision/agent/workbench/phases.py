"""The phases of one run, each of which is reported."""

from __future__ import annotations

from pathlib import Path

from ..core.code_files import ARCHIVE
from ..core.own_wheels import WHEELS, WheelArchiveError
from .cloud import CloudClient, ServiceCallFailed
from .document import WorkbenchDocument
from .environment import Environment
from .instance import PhaseFailed, WorkbenchInstance
from .machine_setup import install_system_packages, wait_for_driver
from .probe_run import ProbeResult, fetch_secrets, find_simulated_parts, run_probe
from .status import StatusReporter


def run_phases(
    document: WorkbenchDocument,
    instance: WorkbenchInstance,
    cloud: CloudClient,
    reporter: StatusReporter,
    log: Path,
) -> int:
    """Run all phases; return 0, or 1 if one failed. A failed verification is a finished run."""
    try:
        proof = _phases(document, instance, cloud, reporter)
        reporter.begin_phase("report")
        cloud.write_object(document.report, proof.report, "application/json")
    except (PhaseFailed, ServiceCallFailed, WheelArchiveError) as error:
        why = str(error)
    except Exception as error:  # noqa: BLE001
        why = f"internal error: {type(error).__name__}: {error}"
    else:
        reporter.log_line(f"verdict {proof.verdict}")
        reporter.send_log(log)
        reporter.report_result(proof.verdict, proof.code, proof.report)
        reporter.end_run()
        (instance.work / "done").touch()
        return 0
    for line in why.splitlines()[:20]:
        reporter.log_line(line)
    reporter.send_log(log)
    reporter.end_run(why)
    return 1


def _phases(
    document: WorkbenchDocument,
    instance: WorkbenchInstance,
    cloud: CloudClient,
    reporter: StatusReporter,
) -> ProbeResult:
    reporter.begin_phase("start")
    for name, file in (("installer.pyz", document.installer), ("probe.pyz", document.probe)):
        (instance.work / name).write_bytes(cloud.read_object(file.address, file.sha256))
    if document.wheels is not None:
        content = cloud.read_object(document.wheels.address, document.wheels.sha256)
        (instance.work / WHEELS).write_bytes(content)
    if document.gpu is not None:
        reporter.begin_phase("driver")
        reporter.log_line(f"driver: {wait_for_driver(document, instance)}")
    if document.system_packages:
        reporter.begin_phase("system")
        names = ", ".join(install_system_packages(document, instance))
        reporter.log_line(f"system packages installed: {names or 'none'}")
    environment = Environment(document, instance)
    outdated = environment.find_outdated_packages()
    if environment.is_complete() and not outdated:
        reporter.log_line(f"environment {environment.prefix} matches the lock: nothing to install")
    else:
        _create_environment(environment, reporter)
    reporter.installed = document.package_count
    environment.create_declared_folders()
    if document.code is not None:
        content = cloud.read_object(document.code.address, document.code.sha256)
        (instance.work / ARCHIVE).write_bytes(content)
        environment.unpack_code()
        reporter.log_line(f"code unpacked in {environment.code_folder}")
    if document.kernel is not None:
        reporter.begin_phase("kernel")
        kernel = environment.register_kernel() or "none (ipykernel is not in the lock)"
        reporter.log_line(f"Jupyter kernel: {kernel}")
    reporter.begin_phase("verify")
    secrets = fetch_secrets(document, cloud, instance)
    return run_probe(environment, secrets, find_simulated_parts(document, cloud))


def _create_environment(environment: Environment, reporter: StatusReporter) -> None:
    reporter.begin_phase("python")
    uv = environment.find_uv()
    python = environment.find_python(uv)
    reporter.log_line(f"uv {uv}, python {python}")
    reporter.begin_phase("packages")
    counts = environment.create(uv, python, reporter.report_count)
    shown = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()) if count)
    reporter.log_line(f"packages: {shown or 'none'}")
    for name in environment.remove_old():
        reporter.log_line(f"removed the environment {name} from an earlier lock")
