"""The registry of lint rules: each module in the folder of an area that defines RULE or RULES.

An area declares in its `__init__` which specs it concerns. `KINDS` are the kinds of targets, every
kind if there is no such attribute. `NVIDIA_ONLY` names the modules that concern NVIDIA cards alone.
The modules that do not concern a spec are not imported, so that `provision lint` starts quickly.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from provision.rules.rule import Rule


@cache
def load_rules(kinds: frozenset[str] | None = None, *, nvidia: bool = True) -> tuple[Rule, ...]:
    """Return the rules that concern specs with these kinds of targets, in the order of their ids.

    Args:
        kinds: kinds of the spec's targets; None for all rules.
        nvidia: whether a target has an NVIDIA card.
    """
    rules: list[Rule] = []
    for area in _areas():
        area_kinds: frozenset[str] | None = getattr(area, "KINDS", None)
        if kinds is not None and area_kinds is not None and kinds.isdisjoint(area_kinds):
            continue
        nvidia_only: frozenset[str] = getattr(area, "NVIDIA_ONLY", frozenset())
        for entry in iter_modules(area.__path__):
            if nvidia or entry.name not in nvidia_only:
                rules += _rules_of(import_module(f"{area.__name__}.{entry.name}"))
    return tuple(sorted(rules, key=lambda rule: rule.id))


def _areas() -> Iterator[ModuleType]:
    for entry in iter_modules([str(Path(__file__).parent)]):
        if entry.ispkg:
            yield import_module(f"provision.rules.{entry.name}")


def _rules_of(module: ModuleType) -> tuple[Rule, ...]:
    if hasattr(module, "RULE"):
        return (module.RULE,)
    return getattr(module, "RULES", ())
