"""Fleets as text: the targets with their prices, what a run would do, and what it did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from provision.facts.machines import MachineOffer
from provision.plan import Action, Operation, Plan
from provision.sanitize import escape_line
from provision.spelling import pluralize
from provision.views.formatting import Style, Styler, display_width

_GAP = "  "


class OutcomeRow(NamedTuple):
    """A target after a run: what became of it in one word, and a sentence about it."""

    label: str
    outcome: str
    detail: str


class PlanRow(NamedTuple):
    """A target before a run: its plan, and its machine with the price if that is known."""

    label: str
    plan: Plan
    offer: MachineOffer | None


_OUTCOME_STYLES = {
    "verified": Style.GOOD,
    "simulated": Style.GOOD,
    "removed": Style.GOOD,
    "failed": Style.ERROR,
    "error": Style.ERROR,
}


def format_listing(targets: Iterable[tuple[str, str, MachineOffer | None]]) -> str:
    """Return targets as lines with label, kind and price."""
    rows = [
        (escape_line(label), kind, _price(offer) or "no known price")
        for label, kind, offer in targets
    ]
    return "\n".join(_align(rows))


def format_total(offers: Iterable[MachineOffer | None]) -> str:
    """Return the sum of known prices, as "$7.10 per hour for 10 machines ..."; "" for none."""
    known = [offer for offer in offers if offer is not None]
    if not known:
        return ""
    dates = sorted({offer.evidence.as_of for offer in known})
    total = sum(offer.dollars for offer in known)
    return (
        f"${total:.2f} per hour for {pluralize(len(known), 'machine')} "
        f"({' to '.join(dict.fromkeys((dates[0], dates[-1])))}), without disks and traffic"
    )


def render_plan_summary(rows: Sequence[PlanRow], lock_lines: Sequence[str], color: bool) -> str:
    """Return what a run would do: a line for each target, and every removal with its notes."""
    styler = Styler(color)
    lines = [f"  {styler('+', Style.GOOD)} {escape_line(line)}" for line in lock_lines]
    table = []
    for row in rows:
        symbols = " ".join(dict.fromkeys(str(action.operation) for action in _shown(row.plan)))
        table.append((symbols, escape_line(row.label), _describe(row), _price(row.offer)))
    lines += [f"  {line}" for line in _align(table)]
    for row in rows:
        for action in row.plan.actions:
            if action.operation in (Operation.REPLACE, Operation.DESTROY):
                lines += _removal(row.label, action, styler)
    total = format_total(row.offer for row in rows)
    if total:
        lines.append(f"Cost: {total}.")
    return "\n".join([*lines, f"Plan: {summarize_plans([row.plan for row in rows])}."]) + "\n"


def render_removal_prices(offers: Mapping[str, MachineOffer]) -> str:
    """Return the prices of targets that are removed, by label, and their sum; "" for none."""
    if not offers:
        return ""
    rows = _align([(escape_line(label), _price(offer)) for label, offer in offers.items()])
    lines = [f"  {row}" for row in rows]
    return "\n".join([*lines, f"Cost while they run: {format_total(offers.values())}."]) + "\n"


def summarize_plans(plans: Sequence[Plan]) -> str:
    """Return how many resources some plans create, change and destroy."""
    merged = Plan(tuple(action for plan in plans for action in plan.actions), {}, "", "", "", 0)
    checks = sum(check.needed for plan in plans for check in plan.verifications.values())
    unchanged = sum(not plan.changes for plan in plans)
    text = f"{merged.summary()}; {pluralize(checks, 'verification')}"
    return f"{text}; {pluralize(unchanged, 'target')} without changes" if unchanged else text


def render_outcomes(rows: Sequence[OutcomeRow], color: bool) -> str:
    """Return a line for each target, and how many have each outcome."""
    styler = Styler(color)
    width = max((display_width(row.label) for row in rows), default=0)
    word_width = max((len(row.outcome) for row in rows), default=0)
    lines = []
    for row in rows:
        word = styler(f"{row.outcome:<{word_width}}", _OUTCOME_STYLES.get(row.outcome))
        label = escape_line(row.label)
        padding = " " * (width - display_width(label))
        lines.append(f"{label}{padding}{_GAP}{word}{_GAP}{escape_line(row.detail)}".rstrip())
    return "\n".join([*lines, count_outcomes(rows)]) + "\n"


def count_outcomes(rows: Sequence[OutcomeRow]) -> str:
    """Return how many targets have each outcome, as "3 targets: 2 verified, 1 failed"."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.outcome] = counts.get(row.outcome, 0) + 1
    parts = (f"{count} {outcome}" for outcome, count in counts.items())
    return f"{pluralize(len(rows), 'target')}: {', '.join(parts)}"


def _shown(plan: Plan) -> tuple[Action, ...]:
    return plan.changes or plan.actions


def _describe(row: PlanRow) -> str:
    titles = ", ".join(dict.fromkeys(action.title for action in _shown(row.plan)))
    if any(check.needed for check in row.plan.verifications.values()):
        titles += ", then verification"
    return escape_line(titles)


def _removal(label: str, action: Action, styler: Styler) -> list[str]:
    symbol = styler(str(action.operation), Style.WARNING)
    lines = [f"  {symbol} {escape_line(label)}: {escape_line(action.reason)}"]
    return lines + [f"      {escape_line(note)}" for note in action.notes]


def _price(offer: MachineOffer | None) -> str:
    return "" if offer is None else f"${offer.dollars:.2f} per hour in {offer.region}"


def _align(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    return [
        _GAP.join(
            cell + " " * (width - display_width(cell))
            for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
