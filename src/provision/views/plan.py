"""A plan as text and as data: actions with their reasons, and the verification after them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from provision.plan import Action, Operation, Plan
from provision.sanitize import escape_line
from provision.views.formatting import Style, Styler, indent_rest, wrap

_VERB_STYLES = {
    Operation.CREATE: Style.GOOD,
    Operation.CHANGE: Style.WARNING,
    Operation.REPLACE: Style.WARNING,
    Operation.DESTROY: Style.ERROR,
    Operation.KEEP: Style.FAINT,
}


def render_text(
    plan: Plan, lock_line: str, color: bool, width: int, failed: Mapping[str, str] = {}
) -> str:
    """Return the plan for a terminal of `width` cells.

    `lock_line` is the change of the lock file, "" if there is none; `failed` are the errors of
    targets that are not in the plan, by address.
    """
    return "\n".join(_lines(plan, lock_line, Styler(color), width, failed)) + "\n"


def render_target(plan: Plan, label: str, color: bool, width: int) -> str:
    """Return the plan of a single target under a label, without a summary."""
    lines = _target_lines(plan, plan.actions[0].address, label, Styler(color), width)
    return "\n".join(lines) + "\n"


def render_actions(steps: Sequence[Action], color: bool, width: int) -> str:
    """Return a list of actions, each with its reason."""
    return (
        "\n".join(row for action in steps for row in _action(action, Styler(color), width)) + "\n"
    )


def to_json(plan: Plan, lock_line: str) -> dict[str, Any]:
    """Return the plan as data."""
    return {
        "version": 1,
        "lock": lock_line or None,
        "actions": [_document(action) for action in plan.actions],
        "verification": {
            name: {"needed": v.needed, "tier": v.tier, "because": v.reason}
            for name, v in plan.verifications.items()
        },
        "summary": plan.summary(),
        "seal": plan.fingerprint(),
    }


def _document(action: Action) -> dict[str, Any]:
    document: dict[str, Any] = {
        "symbol": str(action.operation),
        "address": action.address,
        "part": action.part,
        "title": action.title,
        "because": action.reason,
    }
    if action.notes:
        document["notes"] = list(action.notes)
    return document


def _lines(
    plan: Plan, lock_line: str, styler: Styler, width: int, failed: Mapping[str, str]
) -> Iterator[str]:
    if lock_line:
        yield from _row(styler("+", Style.GOOD), 2, escape_line(lock_line), width)
    for address in dict.fromkeys(action.address for action in plan.actions):
        yield from _target_lines(plan, address, address, styler, width)
    for address, what in failed.items():
        yield styler(escape_line(address), Style.STRONG)
        yield from _row(styler("not planned:", Style.ERROR), 5, escape_line(what), width - 8)
    if plan.changes or lock_line:
        yield from wrap(f"Plan: {plan.summary()}.", width)
    elif any(check.needed for check in plan.verifications.values()):
        yield "No changes; only the verification remains."
    elif not failed:
        yield "No changes. Everything matches the spec."


def _target_lines(
    plan: Plan, address: str, label: str, styler: Styler, width: int
) -> Iterator[str]:
    yield styler(escape_line(label), Style.STRONG)
    for action in plan.actions:
        if action.address == address:
            yield from _action(action, styler, width)
    check = plan.verifications.get(address.partition("/")[2])
    if check is not None:
        lead = "then" if check.needed else styler("=   ", Style.FAINT)
        text = f"{check.tier} verification {check.location}: {escape_line(check.reason)}"
        yield from _row(lead, 5, text, width)


def _action(action: Action, styler: Styler, width: int) -> Iterator[str]:
    """Yield an action with its reason, which is below the title if notes follow."""
    title, *below = f"{action.title}: {action.reason}", *action.notes
    if below:
        title, below = f"{action.title}:", [action.reason, *below]
    symbol = styler(f"{action.operation:<4}", _VERB_STYLES[action.operation])
    yield from _row(symbol, 5, escape_line(title), width)
    for text in below:
        yield from _row("    ", 5, escape_line(text), width)


def _row(lead: str, lead_width: int, text: str, width: int) -> Iterator[str]:
    """Yield a text to the right of a lead, wrapped."""
    return indent_rest(f"  {lead} ", wrap(text, width - lead_width - 4), lead_width + 4)
