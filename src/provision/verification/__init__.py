"""Verification of a device: expectations, reports, comparisons, parity and explanations."""

from provision.verification.device_files import (
    digest_of_expectations,
    expectations_of,
    installer_zipapp,
    notebook_zipapp,
    probe_digest,
    probe_zipapp,
    workbench_zipapp,
)
from provision.verification.report import EXIT_CODES, Report, read_report

__all__ = [
    "EXIT_CODES",
    "Report",
    "digest_of_expectations",
    "expectations_of",
    "installer_zipapp",
    "notebook_zipapp",
    "probe_digest",
    "probe_zipapp",
    "read_report",
    "workbench_zipapp",
]
