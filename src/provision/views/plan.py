"""A plan as text and as data: what would be done, why, and what verification follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from provision.plan import Action, Operation, Plan
from provision.sanitize import escape_line
from provision.views.terminal_text import Style, Styler

_VERB_STYLES = {
    Operation.CREATE: Style.GOOD,
    Operation.CHANGE: Style.WARNING,
    Operation.REPLACE: Style.WARNING,
    Operation.DESTROY: Style.ERROR,
    Operation.KEEP: Style.FAINT,
}


def render_text(plan: Plan, lock_line: str, color: bool, failed: Mapping[str, str] = {}) -> str:
    """Return the plan for a terminal.

    `lock_line` says what becomes of the lock file, "" when it stays; `failed` what stopped
    targets that are not in the plan, by address.
    """
    return "\n".join(_lines(plan, lock_line, Styler(color), failed)) + "\n"


def render_actions(steps: Sequence[Action], color: bool) -> str:
    """Return a list of actions, one a line with its reason."""
    return "\n".join(_action(action, Styler(color)) for action in steps) + "\n"


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
    told = {
        "symbol": str(action.operation),
        "address": action.address,
        "part": action.part,
        "title": action.title,
        "because": action.reason,
    }
    return {**told, **({"notes": list(action.notes)} if action.notes else {})}


def _lines(plan: Plan, lock_line: str, pen: Styler, failed: Mapping[str, str]) -> Iterator[str]:
    if lock_line:
        yield f"  {pen('+', Style.GOOD)} {escape_line(lock_line)}"
    for address in dict.fromkeys(action.address for action in plan.actions):
        yield pen(escape_line(address), Style.STRONG)
        yield from (_action(action, pen) for action in plan.actions if action.address == address)
        check = plan.verifications.get(address.partition("/")[2])
        if check is not None:
            symbol = "then" if check.needed else pen("=   ", Style.FAINT)
            reason = escape_line(check.reason)
            yield f"  {symbol} {check.tier} verification {check.location}: {reason}"
    for address, what in failed.items():
        (
            yield f"{pen(escape_line(address), Style.STRONG)}\n  "
            f"{pen('not planned', Style.ERROR)}: "
            f"{escape_line(what)}"
        )
    if plan.changes or lock_line:
        yield f"Plan: {plan.summary()}."
    elif not failed:
        yield "No changes. Everything is as declared."


def _action(action: Action, pen: Styler) -> str:
    title, because = escape_line(action.title), escape_line(action.reason)
    # A title with notes is the head of a block; its reason stands below it.
    joint = ":\n       " if action.notes else ": "
    line = (
        f"  {pen(f'{action.operation:<4}', _VERB_STYLES[action.operation])} {title}{joint}{because}"
    )
    return "\n".join([line, *(f"       {escape_line(note)}" for note in action.notes)])
