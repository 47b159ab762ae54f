"""One run, phase after phase, told as it goes."""

from __future__ import annotations

from pathlib import Path

from .cloud import CloudClient, CloudError
from .document import Document, RemoteFile
from .environment import (
    create_declared_folders,
    create_environment,
    environment_prefix,
    find_python,
    find_uv,
    is_environment_complete,
    register_kernel,
    remove_old_environments,
)
from .instance import Instance, PhaseFailed
from .machine_setup import install_system_packages, wait_for_driver
from .probe_run import ProbeResult, fetch_secrets, find_simulated_parts, run_probe
from .status import StatusReporter


def run_phases(
    document: Document, instance: Instance, cloud: CloudClient, reporter: StatusReporter, log: Path
) -> int:
    """Run all phases; return 0, or 1 if one failed. A failed verification is a finished run."""
    try:
        proof = _phases(document, instance, cloud, reporter)
        reporter.begin_phase("report")
        cloud.write_object(document.report, proof.report, "application/json")
    except (PhaseFailed, CloudError) as error:
        return _failed(reporter, log, str(error))
    except Exception as error:  # noqa: BLE001
        return _failed(
            reporter, log, f"fault of the program itself: {type(error).__name__}: {error}"
        )
    reporter.log_line(f"verdict {proof.verdict}")
    reporter.send_log(log)
    reporter.report_result(proof.verdict, proof.code, proof.report)
    reporter.end_run()
    (instance.work / "done").touch()
    return 0


def _phases(
    document: Document, instance: Instance, cloud: CloudClient, reporter: StatusReporter
) -> ProbeResult:
    reporter.begin_phase("start")
    _fetch(document.installer, instance.work / "installer.pyz", cloud)
    _fetch(document.probe, instance.work / "probe.pyz", cloud)
    if document.gpu is not None:
        reporter.begin_phase("driver")
        reporter.log_line(f"driver: {wait_for_driver(document, instance)}")
    if document.system_packages:
        reporter.begin_phase("system")
        reporter.log_line(
            "system packages installed: "
            f"{', '.join(install_system_packages(document, instance)) or 'none'}"
        )
    if is_environment_complete(document, instance):
        reporter.log_line(
            f"environment {environment_prefix(document, instance)} is as locked: nothing to install"
        )
    else:
        _make(document, instance, reporter)
    reporter.installed = document.package_count
    create_declared_folders(document, instance)
    if document.kernel is not None:
        reporter.begin_phase("kernel")
        reporter.log_line(
            "Jupyter kernel: "
            f"{register_kernel(document, instance) or 'none, ipykernel is not among the packages'}"
        )
    reporter.begin_phase("verify")
    return run_probe(
        document,
        instance,
        fetch_secrets(document, cloud, instance),
        find_simulated_parts(document, cloud),
    )


def _make(document: Document, instance: Instance, reporter: StatusReporter) -> None:
    reporter.begin_phase("python")
    uv = find_uv(document, instance)
    python = find_python(document, uv, instance)
    reporter.log_line(f"uv {uv}, python {python}")
    reporter.begin_phase("packages")
    counts = create_environment(document, uv, python, instance, reporter.report_count)
    reporter.log_line(
        "packages: "
        + (
            ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()) if count)
            or "none"
        )
    )
    for name in remove_old_environments(document, instance):
        reporter.log_line(f"environment {name} of an earlier lock was removed")


def _fetch(wanted: RemoteFile, path: Path, cloud: CloudClient) -> None:
    path.write_bytes(cloud.read_object(wanted.address, wanted.sha256))


def _failed(reporter: StatusReporter, log: Path, why: str) -> int:
    for line in why.splitlines()[:20]:
        reporter.log_line(line)
    reporter.send_log(log)
    reporter.end_run(why)
    return 1
