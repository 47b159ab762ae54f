"""Verification of a device: expectations, reports, comparisons, parity and explanations."""

from provision.verification.report import EXIT_CODES, Report, read_report

__all__ = ["EXIT_CODES", "Report", "read_report"]
