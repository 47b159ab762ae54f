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
    document: Document, machine: Instance, cloud: CloudClient, teller: StatusReporter, log: Path
) -> int:
    """Do all phases and return 0; 1 when one of them failed, which is told with its reason. A
    verification that fails is a run that is done.
    """
    try:
        proof = _phases(document, machine, cloud, teller)
        teller.begin_phase("report")
        cloud.write_object(document.report, proof.report, "application/json")
    except (PhaseFailed, CloudError) as error:
        return _failed(teller, log, str(error))
    except Exception as error:  # noqa: BLE001
        return _failed(teller, log, f"fault of the program itself: {type(error).__name__}: {error}")
    teller.log_line(f"verdict {proof.verdict}")
    teller.send_log(log)
    teller.report_result(proof.verdict, proof.code, proof.report)
    teller.end_run()
    (machine.work / "done").touch()
    return 0


def _phases(
    document: Document, machine: Instance, cloud: CloudClient, teller: StatusReporter
) -> ProbeResult:
    teller.begin_phase("start")
    _fetch(document.installer, machine.work / "installer.pyz", cloud)
    _fetch(document.probe, machine.work / "probe.pyz", cloud)
    if document.gpu is not None:
        teller.begin_phase("driver")
        teller.log_line(f"driver: {wait_for_driver(document, machine)}")
    if document.system_packages:
        teller.begin_phase("system")
        teller.log_line(
            "system packages installed: "
            f"{', '.join(install_system_packages(document, machine)) or 'none'}"
        )
    if is_environment_complete(document, machine):
        teller.log_line(
            f"environment {environment_prefix(document, machine)} is as locked: nothing to install"
        )
    else:
        _make(document, machine, teller)
    teller.installed = document.package_count
    create_declared_folders(document, machine)
    if document.kernel is not None:
        teller.begin_phase("kernel")
        teller.log_line(
            "Jupyter kernel: "
            f"{register_kernel(document, machine) or 'none, ipykernel is not among the packages'}"
        )
    teller.begin_phase("verify")
    return run_probe(
        document,
        machine,
        fetch_secrets(document, cloud, machine),
        find_simulated_parts(document, cloud),
    )


def _make(document: Document, machine: Instance, teller: StatusReporter) -> None:
    teller.begin_phase("python")
    uv = find_uv(document, machine)
    python = find_python(document, uv, machine)
    teller.log_line(f"uv {uv}, python {python}")
    teller.begin_phase("packages")
    counts = create_environment(document, uv, python, machine, teller.report_count)
    teller.log_line(
        "packages: "
        + (
            ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()) if count)
            or "none"
        )
    )
    for name in remove_old_environments(document, machine):
        teller.log_line(f"environment {name} of an earlier lock was removed")


def _fetch(wanted: RemoteFile, path: Path, cloud: CloudClient) -> None:
    path.write_bytes(cloud.read_object(wanted.address, wanted.sha256))


def _failed(teller: StatusReporter, log: Path, why: str) -> int:
    for line in why.splitlines()[:20]:
        teller.log_line(line)
    teller.send_log(log)
    teller.end_run(why)
    return 1
