"""Runs lint rules on a spec and sanitizes their findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
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
from provision.rules.registry import load_notebook_rules, load_rules
from provision.rules.rule import LintContext, Rule, Subject
from provision.rules.target_settings import split_by_settings
from provision.sanitize import escape_line, redact

if TYPE_CHECKING:
    from provision.rules.notebook.context import NotebookContext

MAX_MESSAGE_LENGTH = 400
"""Code points of a message, so that a finding fits on one screen. Our choice."""


def run_rules(
    context: LintContext, rules: tuple[Rule[LintContext], ...] | None = None
) -> tuple[Diagnostic, ...]:
    """Return the sanitized findings in the order of their routes and ids, without repetitions.

    Args:
        context: the spec, its facts, and the resolved set if there is one.
        rules: the rules to run; None for all that concern the spec's targets.

    Returns:
        The findings. A rule that fails gives a finding too (BUG000).

    Raises:
        ProvisionError: the facts cannot be read.
    """
    if rules is None:
        kinds = frozenset(target.kind for target in context.targets)
        nvidia = any(device.is_nvidia for device in context.devices)
        rules = load_rules(kinds, nvidia=nvidia)
    contexts = tuple(split_by_settings(context))
    findings: list[Diagnostic] = []
    for rule in rules:
        if not rule.reads_settings:
            findings += _run_rule(rule, context, "spec")
            continue
        for part, settings in contexts:
            own = _run_rule(rule, part, "spec")
            findings += own if settings is None else map(settings.move, own)
    return _normalize(findings)


def run_rules_on_notebook(
    context: NotebookContext, rules: tuple[Rule[NotebookContext], ...] | None = None
) -> tuple[Diagnostic, ...]:
    """Return the sanitized findings about a notebook, in the order of cells and ids.

    Cells that `provision render` wrote have only errors, which an edit can bring.

    Args:
        context: the notebook, the facts, and the spec if there is one.
        rules: the rules to run; None for all that concern notebooks.

    Raises:
        ProvisionError: the facts cannot be read.
    """
    if rules is None:
        rules = load_notebook_rules()
    findings = _normalize(
        finding for rule in rules for finding in _run_rule(rule, context, "notebook")
    )
    cells = context.notebook.cells
    rendered = {cell.name for cell in cells if cell.is_rendered}
    findings = tuple(
        finding
        for finding in findings
        if finding.severity is Severity.ERROR or _file_of(finding) not in rendered
    )
    numbers = {cell.name: cell.number for cell in cells}
    # The sort is stable: findings in a cell stay in their order.
    return tuple(sorted(findings, key=lambda finding: numbers.get(_file_of(finding), 0)))


def run_rules_on_invalid_spec(data: Mapping[str, Any]) -> tuple[Diagnostic, ...]:
    """Return the findings about secrets in a spec that does not match the schema."""
    from provision.rules.secrets.secret_literal import check_data

    return _normalize(check_data(data))


def _run_rule(rule: Rule[Subject], context: Subject, subject: str) -> list[Diagnostic]:
    try:
        return list(rule.check(context))
    except ProvisionError:  # the facts cannot be read, which is not a fault of the rule
        raise
    except Exception as error:  # noqa: BLE001
        if error.__cause__ is not None and not isinstance(error.__cause__, Exception):
            raise error.__cause__ from None  # a signal, which pydantic turns into an error
        # The text of the exception may contain values of the text: only its type is shown.
        return [
            Diagnostic(
                "BUG000",
                "rule-failed",
                Severity.ERROR,
                f"rule {rule.id} {rule.name} failed with {type(error).__name__}",
                RouteLocation(()),
                f"This is a bug in provision, not in the {subject}; the rule was not checked.",
                f"report it together with the {subject}",
            )
        ]


def _file_of(finding: Diagnostic) -> str:
    return finding.where.file if isinstance(finding.where, Span) else ""


def _normalize(findings: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    unique = dict.fromkeys(_sanitize(finding) for finding in findings)
    return tuple(sorted(unique, key=_sort_key))


def _sanitize(finding: Diagnostic) -> Diagnostic:
    related = (RelatedLocation(other.where, _clean(other.text)) for other in finding.related)
    return finding._replace(
        message=_clean(finding.message),
        why=_clean(finding.why),
        help=_clean(finding.help),
        related=tuple(related),
    )


@lru_cache(maxsize=4096)
def _clean(text: str) -> str:
    text = escape_line(redact(text))
    if len(text) > MAX_MESSAGE_LENGTH:
        return text[: MAX_MESSAGE_LENGTH - 1] + "…"
    return text


def _sort_key(finding: Diagnostic) -> tuple[tuple[tuple[bool, int, str], ...], str, str]:
    return _location_key(finding.where), finding.id, finding.message


def _location_key(where: Location) -> tuple[tuple[bool, int, str], ...]:
    """Return a key that sorts list indexes as numbers and mapping keys as text."""
    if isinstance(where, Span):
        return ((True, where.start.offset, ""),)
    return tuple(
        (True, part, str(part)) if isinstance(part, int) else (False, 0, part)
        for part in where.route
    )
