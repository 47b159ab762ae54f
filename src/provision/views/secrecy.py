"""What no view may show of a finding."""

from __future__ import annotations

from provision.diagnostics import At, Diagnostic, Place


def is_secret(finding: Diagnostic) -> bool:
    """Tell whether a finding may point at a secret: no view shows the text there, nor a fix, which would repeat it."""
    where = finding.where
    return finding.id.startswith("SEC") or (isinstance(where, Place) and where.route[:1] == ("secrets",) and where.at is At.VALUE)
