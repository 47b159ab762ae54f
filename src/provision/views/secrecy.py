"""What no view may show of a finding."""

from __future__ import annotations

from provision.diagnostics import At, Diagnostic, Place

_HOLDING_SECRETS = ("SEC001", "SPC007")
"""Findings whose place holds a secret in the clear."""
_OF_SHAPE = ("YML", "SPC")
"""Under `secrets`, what has not the shape of a reference may be the secret itself."""


def is_secret(finding: Diagnostic) -> bool:
    """Tell whether a finding may point at a secret: no view shows the text there, nor a fix, which would repeat it."""
    where = finding.where
    misshapen = finding.id.startswith(_OF_SHAPE) and isinstance(where, Place) and where.route[:1] == ("secrets",) and where.at is At.VALUE
    return misshapen or finding.id in _HOLDING_SECRETS
