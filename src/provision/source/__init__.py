"""Text of a spec: parsing within limits, `extends`, validation, and edits that keep the rest."""

from provision.source.document import Source, apply_fixes_together
from provision.source.findings import FINDING_KINDS, FindingKind
from provision.source.loader import read_spec_file, validate_source

__all__ = [
    "FINDING_KINDS",
    "FindingKind",
    "Source",
    "apply_fixes_together",
    "read_spec_file",
    "validate_source",
]
