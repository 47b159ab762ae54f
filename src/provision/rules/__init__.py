"""Everything that can be wrong with a spec, a file each, and the engine that asks them all.

The rules stand in four lists: those that are asked of every spec, and those of cards, of
Workbench and of Colab, which are loaded only for a spec with such
a target. `RULES` is all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from provision.diagnostics import (
    Diagnostic,
    Location,
    RelatedLocation,
    RouteLocation,
    Severity,
    Span,
)
from provision.errors import ProvisionError
from provision.rules.rule import (
    Example,
    LintContext,
    ResolvedSet,
    Rule,
    SourceText,
    render_rule_page,
)
from provision.sanitize import escape_line, redact

if TYPE_CHECKING:
    RULES: tuple[Rule, ...]

__all__ = [
    "RULES",
    "Example",
    "LintContext",
    "ResolvedSet",
    "Rule",
    "SourceText",
    "render_rule_page",
    "run_rules",
]

MAX_MESSAGE_LENGTH = 400
"""Longest message in code points: a finding is read on one screen, whatever the spec holds. Our
choice.
"""
_LISTS = ("registry_every_spec", "registry_nvidia_cards", "registry_workbench", "registry_colab")


def run_rules(case: LintContext, rules: tuple[Rule, ...] | None = None) -> tuple[Diagnostic, ...]:
    """Return what the rules (by default all that concern the spec's targets) find, by route and id,
    each finding once and its text made harmless.

    A rule that fails is a finding too (BUG000).
    """
    asked = _concerned(case) if rules is None else rules
    found = (finding for rule in asked for finding in _asked(rule, case))
    return tuple(sorted(dict.fromkeys(_harmless(finding) for finding in found), key=_order))


def run_rules_on_invalid_spec(data: Mapping[str, Any]) -> tuple[Diagnostic, ...]:
    """Return what can be said of a spec with errors of shape: that it holds a secret."""
    from provision.rules.secrets.secret_literal import check_data

    return tuple(
        sorted(dict.fromkeys(_harmless(finding) for finding in check_data(data)), key=_order)
    )


def __getattr__(name: str) -> Any:
    """Give `RULES`, every rule there is."""
    if name != "RULES":
        raise AttributeError(name)
    return tuple(rule for part in _LISTS for rule in _list(part))


def _concerned(case: LintContext) -> Iterator[Rule]:
    kinds = {target.kind for target in case.spec.targets.values()}
    yield from _list("registry_every_spec")
    if any(device.is_nvidia for device in case.devices):
        yield from _list("registry_nvidia_cards")
    if "workbench" in kinds:
        yield from _list("registry_workbench")
    if kinds & {"colab", "colab-enterprise"}:
        yield from _list("registry_colab")


def _list(name: str) -> tuple[Rule, ...]:
    listed: tuple[Rule, ...] = import_module(f"provision.rules.{name}").RULES
    return listed


def _asked(rule: Rule, case: LintContext) -> tuple[Diagnostic, ...]:
    try:
        return tuple(rule.check(case))
    except ProvisionError:  # the facts cannot be read, which is no fault of the rule
        raise
    except Exception as error:  # noqa: BLE001
        return (_failed(rule, error),)


def _failed(rule: Rule, error: Exception) -> Diagnostic:
    """Report our own fault. The text of the exception may hold values of the spec, so only its type
    is shown.
    """
    return Diagnostic(
        "BUG000",
        "rule-failed",
        Severity.ERROR,
        f"rule {rule.id} {rule.name} failed with {type(error).__name__}",
        RouteLocation(()),
        "This is a fault in provision, not in the spec; what the rule looks for was not checked.",
        "report it with the spec that shows it",
    )


def _harmless(finding: Diagnostic) -> Diagnostic:
    message, why, way_out = (_clean(text) for text in (finding.message, finding.why, finding.help))
    related = tuple(RelatedLocation(other.where, _clean(other.text)) for other in finding.related)
    return finding._replace(message=message, why=why, help=way_out, related=related)


@lru_cache(maxsize=4096)
def _clean(text: str) -> str:
    text = escape_line(redact(text))
    return text if len(text) <= MAX_MESSAGE_LENGTH else text[: MAX_MESSAGE_LENGTH - 1] + "…"


def _order(finding: Diagnostic) -> tuple[tuple[tuple[bool, int, str], ...], str, str]:
    return _route(finding.where), finding.id, finding.message


def _route(where: Location) -> tuple[tuple[bool, int, str], ...]:
    if isinstance(where, Span):
        return ((True, where.start.offset, ""),)
    return tuple(
        (isinstance(part, int), part if isinstance(part, int) else 0, str(part))
        for part in where.route
    )
