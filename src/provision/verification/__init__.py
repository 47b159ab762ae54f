"""What a lock promises of the device, and what came back."""

from provision.verification.expectations import digest_of_expectations, expectations_of
from provision.verification.report import EXIT_CODES, Report, read_report
from provision.verification.zipapps import (
    installer_zipapp,
    notebook_zipapp,
    probe_digest,
    probe_zipapp,
    workbench_zipapp,
)

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
