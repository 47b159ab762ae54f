"""The spec's text: read, composed within limits, extended, validated, and edited without touching what is not named."""

from provision.source.document import Source, edited_together
from provision.source.findings import FINDINGS, Finding
from provision.source.reading import read
from provision.source.validating import validate

__all__ = ["FINDINGS", "Finding", "Source", "edited_together", "read", "validate"]
