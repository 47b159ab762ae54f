"""The lint rules, one per file in a folder per area, and the engine that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provision.rules.engine import run_rules, run_rules_on_invalid_spec, run_rules_on_notebook
from provision.rules.registry import load_notebook_rules, load_registered_rules
from provision.rules.rule import (
    Example,
    LintContext,
    ResolvedSet,
    Rule,
    SpecText,
    render_rule_page,
)

if TYPE_CHECKING:
    RULES: tuple[Rule[LintContext], ...]

__all__ = [
    "RULES",
    "Example",
    "LintContext",
    "ResolvedSet",
    "Rule",
    "SpecText",
    "load_notebook_rules",
    "load_registered_rules",
    "render_rule_page",
    "run_rules",
    "run_rules_on_invalid_spec",
    "run_rules_on_notebook",
]


def __getattr__(name: str) -> Any:
    """Return all rules as `RULES`, loaded on first use."""
    if name != "RULES":
        raise AttributeError(name)
    return load_registered_rules()
