"""Parity across targets, for a terminal, as Markdown and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provision.sanitize import escape_line
from provision.verification.parity_model import (
    Parity,
    ParityTarget,
    ReportStanding,
    Statement,
    StatementResult,
)
from provision.views.formatting import Style, Styler, indent_rest, wrap
from provision.views.markdown import escape_markdown, table_row

VERSION = 1
_LABEL_WIDTH = 13
_MAX_UNDECLARED = 3
_SENTENCES = {
    True: ("parity is proven", "proven to differ", "not yet proven"),
    False: ("nothing that matters differs", "they differ", "not observed on both"),
}
"""Words for the results equal, differs and unproven: with a lock, and of two documents."""
_ANOTHER = (
    "add another target to `targets` of the spec, or compare two files, as in: provision parity "
    "laptop.json colab.json"
)
_RESULT_LABELS = {
    StatementResult.EQUAL: ("equal", Style.GOOD),
    StatementResult.DIFFERS_AS_DECLARED: ("as declared", Style.GOOD),
    StatementResult.DIFFERS: ("DIFFERS", Style.ERROR),
    StatementResult.UNPROVEN: ("unproven", Style.WARNING),
}


def render_text(parity: Parity, color: bool, width: int) -> str:
    """Return the statements for a terminal, `width` cells wide."""
    return "\n".join(_lines(parity, Styler(color), max(50, width))) + "\n"


def render_markdown(parity: Parity) -> str:
    """Return the statements as Markdown, for a comment or a ticket."""
    return "\n".join(_markdown_lines(parity)) + "\n"


def to_json(parity: Parity) -> dict[str, Any]:
    """Return the statements as data."""
    return {
        "version": VERSION,
        "result": parity.result.value,
        "sentence": summarize_parity(parity),
        "targets": [_target(target) for target in parity.targets],
        "statements": [
            {
                "subject": statement.subject,
                "found": statement.result.value,
                "declared": statement.declared,
                "observed": dict(statement.observed),
                "why": statement.why,
            }
            for statement in parity.statements
        ],
        "undeclared": list(parity.undeclared),
    }


def summarize_parity(parity: Parity) -> str:
    """Return the result in one sentence."""
    names = ", ".join(target.target for target in parity.targets)
    proven, differing, unproven = _SENTENCES[parity.has_lock]
    simulated = ", ".join(
        target.target for target in parity.targets if target.standing is ReportStanding.SIMULATED
    )
    suffix = f" (simulated: {simulated})" if simulated else ""
    if parity.result is StatementResult.EQUAL:
        return f"{names}: {proven}{suffix}"
    if parity.is_alone and parity.result is StatementResult.UNPROVEN:
        return f"{names}: nothing to compare, because there is no other target{suffix}"
    subjects = [
        statement.subject for statement in parity.statements if statement.result is parity.result
    ]
    label = differing if parity.result is StatementResult.DIFFERS else unproven
    return f"{names}: {label}: {', '.join(subjects)}{suffix}"


def _lines(parity: Parity, styler: Styler, width: int) -> Iterator[str]:
    for row in wrap(escape_line(summarize_parity(parity)), width):
        yield styler(row, _RESULT_LABELS[parity.result][1])
    yield ""
    for target in parity.targets:
        yield from _field(target.target, _describe_standing(target), width, styler)
    yield ""
    for statement in parity.statements:
        label, style = _label(parity, statement.result)
        text = _describe_statement(statement, "on all targets" if parity.has_lock else "on both")
        yield from _field(label, text, width, styler, style)
    for difference in parity.undeclared[:_MAX_UNDECLARED]:
        yield from _field(_undeclared_label(parity), difference, width, styler)
    hidden = len(parity.undeclared) - _MAX_UNDECLARED
    if hidden > 0:
        yield f"{'':<{_LABEL_WIDTH}}(+{hidden} more: --output-format json)"
    commands = [target.prove for target in parity.targets if target.prove]
    if commands or parity.is_alone:
        yield ""
    for command in commands:  # never broken into lines
        yield from _field("to prove", command, max(width, len(command) + _LABEL_WIDTH), styler)
    if parity.is_alone:
        yield from _field("to compare", _ANOTHER, width, styler)


def _label(parity: Parity, result: StatementResult) -> tuple[str, Style]:
    """Return the label of a statement: a single target is as locked, not equal to another."""
    label, style = _RESULT_LABELS[result]
    return ("as locked" if parity.is_alone and result is StatementResult.EQUAL else label), style


def _undeclared_label(parity: Parity) -> str:
    return "undeclared" if parity.has_lock else "harmless"


def _describe_standing(target: ParityTarget) -> str:
    text = f"{target.kind}, {target.standing.value}"
    if target.at:
        text += f" on {target.at}"
    if target.carried:
        text += ", from an exported probe"
    if target.why:
        text += f": {target.why}"
    if target.elsewhere:
        text += f"; {target.elsewhere}"
    return text


def _describe_statement(statement: Statement, everywhere: str) -> str:
    targets: dict[str, list[str]] = {}
    for target, value in statement.observed.items():
        targets.setdefault(value, []).append(target)
    seen = ", ".join(f"{value} on {' and '.join(names)}" for value, names in targets.items())
    is_same = len(targets) == 1 and len(statement.observed) > 1
    if is_same and statement.result is StatementResult.EQUAL:
        seen = f"{next(iter(targets))} {everywhere}"
    declared = f": {statement.declared}" if statement.declared else ""
    parts = [f"{statement.subject}{declared}"]
    if seen:
        parts.append(f"observed: {seen}")
    if statement.why:
        parts.append(statement.why)
    return "; ".join(parts)


def _field(
    label: str, text: str, width: int, styler: Styler, style: Style | None = None
) -> Iterator[str]:
    head = escape_line(label)
    rows = wrap(escape_line(text), width - max(_LABEL_WIDTH, len(head) + 1))
    padding = " " * max(1, _LABEL_WIDTH - len(head))
    return indent_rest(styler(head, style) + padding, rows, _LABEL_WIDTH)


def _markdown_lines(parity: Parity) -> Iterator[str]:
    yield f"### {escape_markdown(summarize_parity(parity))}\n"
    yield "| target | kind | report | how to prove it |\n|---|---|---|---|"
    for target in parity.targets:
        standing = _describe_standing(target).partition(", ")[2]
        yield table_row(target.target, target.kind, standing, target.prove)
    yield "\n| statement | result | declared | observed | why |\n|---|---|---|---|---|"
    for statement in parity.statements:
        seen = "; ".join(f"{target}: {value}" for target, value in statement.observed.items())
        yield table_row(
            statement.subject,
            _label(parity, statement.result)[0],
            statement.declared,
            seen,
            statement.why,
        )
    if parity.is_alone:
        yield f"\nto compare: {_ANOTHER}"
    for difference in parity.undeclared:
        yield f"\n{_undeclared_label(parity)}: {escape_markdown(difference)}"


def _target(target: ParityTarget) -> dict[str, Any]:
    return {
        "target": target.target,
        "kind": target.kind,
        "why": target.why,
        "prove": target.prove,
        "carried": target.carried,
        "at": target.at,
        "elsewhere": target.elsewhere,
        "standing": target.standing.value,
        "identity": target.report.identity if target.report is not None else None,
    }
