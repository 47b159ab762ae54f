"""Combinations that satisfy every rule, as text and as data: what each holds, what it changes, what that gives up, and what backs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provision.diagnostics import Diagnostic, Route
from provision.rules.suggest import Backed, Evidence, Offer
from provision.rules.variations import Change
from provision.safe import redact, safe_line
from provision.views.ink import Ink, Pen, wrap
from provision.views.words import plural

VERSION = 1
_INKS = {Evidence.RULES: Ink.FAINT, Evidence.RESOLVED: Ink.GOOD, Evidence.REFUTED: Ink.ERROR, Evidence.VERIFIED: Ink.GOOD}


def text(offer: Offer, color: bool, width: int) -> str:
    """Return the combinations for a terminal, best first."""
    return "\n".join(_lines(offer, Pen(color), max(40, width))) + "\n"


def document(offer: Offer) -> dict[str, Any]:
    """Return the combinations as data."""
    return {
        "version": VERSION,
        "for": offer.name,
        "combinations": [_combination(one) for one in offer.combinations],
        "in_the_way": [_finding(one) for one in offer.in_the_way],
        "tried": offer.tried,
    }


def _combination(backed: Backed) -> dict[str, Any]:
    one = backed.suggestion
    changes = [{"route": list(change.route), "was": change.was, "now": change.now, "gives_up": change.gives_up or None} for change in one.changes]
    holds = {"python": one.choice.python, "cuda": one.choice.cuda, "packages": [package.requirement for package in one.spec.packages]}
    precision = {"precision": one.choice.precision.value}
    return {**holds, **precision, "changes": changes, "evidence": backed.evidence.value, "note": backed.note, "remarks": [_finding(r) for r in one.remarks]}


def _finding(finding: Diagnostic) -> dict[str, str]:
    return {"id": finding.id, "name": finding.name, "severity": finding.severity.value, "message": finding.message, "help": finding.help}


def _lines(offer: Offer, pen: Pen, width: int) -> Iterator[str]:
    count = len(offer.combinations)
    kept = "every rule accepts" if not offer.in_the_way else "no other rule objects to"
    found = f"{plural(count, 'combination')} that {kept}" if count else f"No combination was found that every rule accepts, among {offer.tried} that were tried"
    yield pen(f"{found}, for {_clean(offer.name)}", Ink.STRONG)
    for number, backed in enumerate(offer.combinations, start=1):
        yield ""
        yield from _shown(number, backed, pen, width)
    if offer.in_the_way:
        yield ""
        yield pen("Errors that no choice of versions mends:", Ink.ERROR)
        for finding in offer.in_the_way:
            yield from _wrapped(f"  {finding.id} ", f"{_clean(finding.message)}; {_clean(finding.help)}", width)
    if any(backed.evidence is Evidence.RULES and not backed.note for backed in offer.combinations):
        yield ""
        yield pen("rules only: nothing was resolved or run; --resolve asks uv, which needs the network, and `provision apply` verifies.", Ink.FAINT)


def _shown(number: int, backed: Backed, pen: Pen, width: int) -> Iterator[str]:
    one = backed.suggestion
    pins = [f"{name} {version}" for name, version in (("torch", one.choice.torch), ("transformers", one.choice.transformers)) if version]
    build = [] if one.choice.cuda in ("auto", "none") else [f"CUDA {one.choice.cuda}"]
    yield f"{pen(str(number), Ink.STRONG)}  {', '.join([f'Python {one.choice.python}', *pins, *build])}  {pen(f'[{backed.evidence}]', _INKS[backed.evidence])}"
    if backed.note:
        yield from _wrapped("     ", _clean(backed.note), width)
    if not one.changes:
        yield "     changes nothing: the spec lets this through"
    for change in one.changes:
        yield from _wrapped("     ", _change(change), width)
    if one.gives_up:
        yield from _wrapped("     gives up ", ", ".join(_clean(lost) for lost in one.gives_up), width)
    for remark in one.remarks:
        yield from _wrapped(f"     {pen('warning', Ink.WARNING)} ", f"{remark.id}: {_clean(remark.message)}", width)


def _change(change: Change) -> str:
    where = _dotted(change.route)
    if not change.was:
        return f"{where}: write {_clean(change.now)}"
    return f"{where}: {_clean(change.was)} becomes {_clean(change.now)}" if change.now else f"{where}: without {_clean(change.was)}"


def _dotted(route: Route) -> str:
    return ".".join(str(part) for part in route if isinstance(part, str))


def _wrapped(lead: str, words: str, width: int) -> Iterator[str]:
    indent = len(lead) - len(lead.lstrip()) + 2
    first, *rest = wrap(words, width - len(lead))
    yield lead + first
    yield from (" " * indent + row for row in rest)


def _clean(words: str) -> str:
    return safe_line(redact(words))
