"""Findings that may point at a secret, which no view shows."""

from __future__ import annotations

from provision.diagnostics import Diagnostic, RouteLocation, RoutePart, field_of

_SECRET_RULES = ("NTB008", "SEC001", "SPC007")
"""Findings whose place contains a secret in the clear."""
_SHAPE_RULE_PREFIXES = ("YML", "SPC")
"""Under `secrets`, a value that is not a reference may be the secret itself."""


def may_contain_secret(finding: Diagnostic) -> bool:
    """Return whether a finding may point at a secret.

    Views show neither its text nor its fix, which would repeat it.
    """
    where = finding.where
    misshapen = (
        finding.id.startswith(_SHAPE_RULE_PREFIXES)
        and isinstance(where, RouteLocation)
        and field_of(where.route) == "secrets"
        and where.part is RoutePart.VALUE
    )
    return misshapen or finding.id in _SECRET_RULES
