"""What is proven equal across targets, for a terminal, as Markdown and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provision.sanitize import escape_line
from provision.verification.parity import Parity, ParityTarget, Statement, StatementResult
from provision.views.markdown import escape_markdown
from provision.views.terminal_text import Style, Styler, wrap

VERSION = 1
_LEAD = 13
_RESULT_WORDS = {
    StatementResult.EQUAL: "equal",
    StatementResult.DIFFERS_AS_DECLARED: "as declared",
    StatementResult.DIFFERS: "DIFFERS",
    StatementResult.UNPROVEN: "not yet",
}
_RESULT_STYLES = {
    StatementResult.EQUAL: Style.GOOD,
    StatementResult.DIFFERS_AS_DECLARED: Style.GOOD,
    StatementResult.DIFFERS: Style.ERROR,
    StatementResult.UNPROVEN: Style.WARNING,
}


def render_text(found: Parity, color: bool, width: int) -> str:
    """Return the statements for a terminal, `width` cells wide."""
    return "\n".join(_lines(found, Styler(color), max(50, width))) + "\n"


def render_markdown(found: Parity) -> str:
    """Return the statements as Markdown, for a comment or a ticket."""
    return "\n".join(_markdown_lines(found)) + "\n"


def to_json(found: Parity) -> dict[str, Any]:
    """Return the statements as data."""
    return {
        "version": VERSION,
        "result": found.result.value,
        "sentence": summarize_parity(found),
        "targets": [_target(side) for side in found.targets],
        "statements": [_statement(one) for one in found.statements],
        "undeclared": list(found.undeclared),
    }


def summarize_parity(found: Parity) -> str:
    """Return all of it in one sentence."""
    names = ", ".join(side.target for side in found.targets)
    if found.result is StatementResult.EQUAL:
        return f"{names}: all that is declared is proven{_simulated(found)}"
    chosen = [one.subject for one in found.statements if one.result is found.result]
    word = "proven to differ" if found.result is StatementResult.DIFFERS else "not yet proven"
    return f"{names}: {word}: {', '.join(chosen)}{_simulated(found)}"


def _simulated(found: Parity) -> str:
    names = [side.target for side in found.targets if side.standing.value == "simulated"]
    return f" (simulated: {', '.join(names)})" if names else ""


def _lines(found: Parity, pen: Styler, width: int) -> Iterator[str]:
    yield from (
        pen(row, _RESULT_STYLES[found.result])
        for row in wrap(escape_line(summarize_parity(found)), width)
    )
    yield ""
    for side in found.targets:
        yield from _field(side.target, _describe_standing(side), width, pen, None)
    yield ""
    for one in found.statements:
        yield from _field(
            _RESULT_WORDS[one.result],
            _describe_statement(one),
            width,
            pen,
            _RESULT_STYLES[one.result],
        )
    for words in found.undeclared[:3]:
        yield from _field("undeclared", words, width, pen, None)
    if len(found.undeclared) > 3:
        (
            yield f"{'':<{_LEAD}}(+{len(found.undeclared) - 3} more that no lock speaks of: "
            "--output-format json)"
        )
    ways = [side.prove for side in found.targets if side.prove]
    if ways:
        yield ""
    for way in ways:  # a command is never broken
        yield from _field("to prove", way, max(width, len(way) + _LEAD), pen, None)


def _describe_standing(side: ParityTarget) -> str:
    word = side.standing.value + (f" on {side.at}" if side.at else "")
    return (
        f"{side.kind}, {word}"
        + (", by a probe that was carried there" if side.carried else "")
        + (f": {side.why}" if side.why else "")
    )


def _describe_statement(one: Statement) -> str:
    on: dict[str, list[str]] = {}
    for target, value in one.observed.items():
        on.setdefault(value, []).append(target)
    if one.result is StatementResult.EQUAL and len(on) == 1 and len(one.observed) > 1:
        seen = f"{next(iter(on))} on each"
    else:
        seen = ", ".join(f"{value} on {' and '.join(targets)}" for value, targets in on.items())
    return (
        f"{one.subject}: {one.declared}"
        + (f"; seen: {seen}" if seen else "")
        + (f"; {one.why}" if one.why else "")
    )


def _field(word: str, words: str, width: int, pen: Styler, ink: Style | None) -> Iterator[str]:
    head = escape_line(word)
    first, *rest = wrap(escape_line(words), width - max(_LEAD, len(head) + 1)) or [""]
    yield pen(head, ink) + " " * max(1, _LEAD - len(head)) + first
    yield from (" " * _LEAD + row for row in rest)


def _markdown_lines(found: Parity) -> Iterator[str]:
    (
        yield f"### {escape_markdown(summarize_parity(found))}\n\n| target | kind | stands | how "
        "to "
        "prove it |\n|---|---|---|---|"
    )
    for side in found.targets:
        yield (
            "| "
            + " | ".join(
                escape_markdown(part)
                for part in (
                    side.target,
                    side.kind,
                    _describe_standing(side).partition(", ")[2],
                    side.prove,
                )
            )
            + " |"
        )
    yield "\n| statement | found | declared | seen | why |\n|---|---|---|---|---|"
    for one in found.statements:
        seen = "; ".join(f"{target}: {value}" for target, value in one.observed.items())
        yield (
            "| "
            + " | ".join(
                escape_markdown(part)
                for part in (one.subject, _RESULT_WORDS[one.result], one.declared, seen, one.why)
            )
            + " |"
        )
    for words in found.undeclared:
        yield f"\nundeclared: {escape_markdown(words)}"


def _target(side: ParityTarget) -> dict[str, Any]:
    told = {key: getattr(side, key) for key in ("target", "kind", "why", "prove", "carried", "at")}
    return {
        **told,
        "standing": side.standing.value,
        "identity": side.report.identity if side.report is not None else None,
    }


def _statement(one: Statement) -> dict[str, Any]:
    return {
        "subject": one.subject,
        "found": one.result.value,
        "declared": one.declared,
        "observed": dict(one.observed),
        "why": one.why,
    }
