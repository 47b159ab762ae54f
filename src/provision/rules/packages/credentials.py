"""Tokens and keys that training needs: whether a spec declares one, and how it is named where the
targets can reach it.
"""

from __future__ import annotations

from provision.diagnostics import Applicability, Edit, Fix, Insert
from provision.rules.rule import LintContext


def declares_variable(case: LintContext, *names: str) -> bool:
    """Tell whether any of these variables is among the secrets or in the environment."""
    return any(name in case.spec.secrets or name in case.spec.env for name in names)


def add_secret_fix(case: LintContext, name: str) -> Fix | None:
    """Return the fix that names a secret as all targets reach it; None where that takes a project
    in Google's Secret Manager.
    """
    kinds = {target.kind for target in case.spec.targets.values()}
    way = {frozenset({"local"}): "env", frozenset({"colab"}): "colab"}.get(frozenset(kinds))
    if way is None:
        return None
    edit: Edit = (
        Insert(("secrets",), name, f"{{{way}: {name}}}")
        if case.spec.secrets
        else Insert((), "secrets", f"{{{name}: {{{way}: {name}}}}}")
    )
    return Fix(f"name {name} among the secrets", (edit,), Applicability.UNSAFE)
