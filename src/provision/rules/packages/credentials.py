"""The tokens and keys that training needs, and how a spec names them."""

from __future__ import annotations

from provision.diagnostics import Edit, Fix, Insert
from provision.rules.edits import unsafe_fix
from provision.rules.rule import LintContext


def declares_variable(context: LintContext, *names: str) -> bool:
    """Return whether any of these variables is among the secrets or in the environment."""
    return any(name in context.spec.secrets or name in context.spec.env for name in names)


def add_secret_fix(context: LintContext, name: str) -> Fix | None:
    """Return the fix that names a secret; None if it needs Google's Secret Manager."""
    kinds = {target.kind for target in context.spec.targets.values()}
    way = {frozenset({"local"}): "env", frozenset({"colab"}): "colab"}.get(frozenset(kinds))
    if way is None:
        return None
    edit: Edit = (
        Insert(("secrets",), name, f"{{{way}: {name}}}")
        if context.spec.secrets
        else Insert((), "secrets", f"{{{name}: {{{way}: {name}}}}}")
    )
    return unsafe_fix(f"name {name} among the secrets", edit)
