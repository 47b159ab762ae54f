"""What a lock promises of the device, and what came back."""

from provision.verification.expectations import digest_of_expectations, expectations_of
from provision.verification.parcel import cell, device, installer, parcel, probe_digest, zipped
from provision.verification.report import EXIT_CODES, Report, read_report

__all__ = [
    "EXIT_CODES",
    "Report",
    "cell",
    "device",
    "digest_of_expectations",
    "expectations_of",
    "installer",
    "parcel",
    "probe_digest",
    "read_report",
    "zipped",
]
