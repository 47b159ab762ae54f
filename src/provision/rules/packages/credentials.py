"""The tokens and keys that training needs, and how a spec names them."""

from __future__ import annotations

from provision.diagnostics import Edit, Fix, Insert
from provision.rules.edits import unsafe_fix
from provision.rules.rule import LintContext


def declares_variable(context: LintContext, *names: str) -> bool:
    """Return whether any of these variables is in `secrets` or `env`."""
    return any(name in context.spec.secrets or name in context.spec.env for name in names)


def add_secret_fix(context: LintContext, name: str) -> Fix | None:
    """Return the fix that adds a secret; None if it has to be in Google's Secret Manager."""
    declared = [target.kind.secret_sources for target in context.targets]
    sources = sorted(frozenset[str]().union(*declared))
    if not all(declared) or "secret" in sources:
        return None
    reference = ", ".join(f"{source}: {name}" for source in sources)
    edit: Edit = (
        Insert(("secrets",), name, f"{{{reference}}}")
        if context.spec.secrets
        else Insert((), "secrets", f"{{{name}: {{{reference}}}}}")
    )
    return unsafe_fix(f"add {name} to `secrets`", edit)
