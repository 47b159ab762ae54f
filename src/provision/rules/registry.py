"""The registry of lint rules: each module in the folder of an area that defines RULE or RULES.

An area concerns every spec, unless the declaration of a kind names it in `Kind.rules`. An area
names in its `__init__` the modules that concern NVIDIA cards alone, as `NVIDIA_ONLY`. The modules
that do not concern a spec are not imported, so that `provision lint` starts quickly. The area
`notebook` concerns notebooks alone.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any

from provision.kinds import REGISTRY, Kind, registry_in_use
from provision.rules.rule import LintContext, Rule

if TYPE_CHECKING:
    from provision.rules.notebook.context import NotebookContext

_NOTEBOOK_AREA = "provision.rules.notebook"


@cache
def load_rules(kinds: frozenset[Kind], *, nvidia: bool = True) -> tuple[Rule[LintContext], ...]:
    """Return the rules that concern specs with these kinds of targets, in the order of their ids.

    Args:
        kinds: kinds of the spec's targets.
        nvidia: whether a target has an NVIDIA card.
    """
    rules: list[Rule[LintContext]] = []
    for name in (*_common_areas(), *{area for kind in kinds for area in kind.rules}):
        area = import_module(name)
        nvidia_only: frozenset[str] = getattr(area, "NVIDIA_ONLY", frozenset())
        for entry in iter_modules(area.__path__):
            if nvidia or entry.name not in nvidia_only:
                rules += _rules_of(import_module(f"{name}.{entry.name}"))
    return tuple(sorted(rules, key=lambda rule: rule.id))


def load_registered_rules() -> tuple[Rule[LintContext], ...]:
    """Return the rules about specs of all registered kinds."""
    return load_rules(frozenset(registry_in_use.get().kinds))


@cache
def load_notebook_rules() -> tuple[Rule[NotebookContext], ...]:
    """Return the rules about notebooks, in the order of their ids."""
    area = import_module(_NOTEBOOK_AREA)
    names = [f"{_NOTEBOOK_AREA}.{entry.name}" for entry in iter_modules(area.__path__)]
    rules = [rule for name in names for rule in _rules_of(import_module(name))]
    return tuple(sorted(rules, key=lambda rule: rule.id))


def _common_areas() -> list[str]:
    """Return the areas about specs here that no kind names."""
    own = {_NOTEBOOK_AREA, *(area for kind in REGISTRY.kinds for area in kind.rules)}
    names = [
        f"provision.rules.{entry.name}"
        for entry in iter_modules([str(Path(__file__).parent)])
        if entry.ispkg
    ]
    return [name for name in names if name not in own]


def _rules_of(module: ModuleType) -> tuple[Rule[Any], ...]:
    if hasattr(module, "RULE"):
        return (module.RULE,)
    return getattr(module, "RULES", ())
