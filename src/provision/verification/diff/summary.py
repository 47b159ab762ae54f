"""Sentences about a comparison of two reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from provision.agent.probe.byte_sizes import format_bytes
from provision.agent.probe.checks import CHECKS
from provision.agent.probe.model import ReadingClass, Status
from provision.verification.diff.model import (
    CheckChange,
    CheckPair,
    ReadingPair,
    ReportComparison,
)

_OPAQUE_READINGS = ("packages.digest", "driver.error")
"""Readings with values that mean little to people: the message of the failed check is clearer."""
CODE_DIGEST = "code.digest"
"""The reading of the project's code, with which a comparison begins."""
_CODE_FILE = "code.file."
_MAX_NAMED = 3


def summarize_comparison(comparison: ReportComparison) -> str:
    """Return the comparison in one sentence without a full stop."""
    sentence = _sentence(comparison)
    if not comparison.tampered:
        return sentence
    verb = "was" if len(comparison.tampered) == 1 else "were"
    names = " and ".join(comparison.tampered)
    return f"{names} {verb} modified after the probe's run, so this is not a proof: {sentence}"


def _sentence(comparison: ReportComparison) -> str:
    broken = [change for change in comparison.check_changes if change.breaks]
    if broken:
        return _broken(comparison, broken)
    a, b, failing = comparison.a.name, comparison.b.name, _failing(comparison)
    if comparison.is_same:
        failures = comparison.one_sided_failures[:_MAX_NAMED]
        alone = "".join(f"; {describe_one_sided_failure(pair, comparison)}" for pair in failures)
        return (
            f"{a} and {b} are the same environment: no identity readings or checks "
            f"differ{alone}{failing}"
        )
    differing = ", ".join(_list_differences(comparison))
    if not comparison.is_comparable:
        details = (differing + failing).removeprefix("; ")
        sentence = f"{a} and {b} cannot be compared: they have no identity reading in common"
        return f"{sentence}; {details}" if details else sentence
    if not differing:
        return f"the reports of {a} and {b} do not differ{failing}"
    return f"{a} and {b} are not the same: {differing}{failing}"


def describe_difference(difference: ReadingPair) -> str:
    """Return a difference, for example "package.torch 2.11.0+cu128 -> 2.13.0+cpu"."""
    key = difference.key
    if key == CODE_DIGEST:
        followers = (name for name in difference.followers if name.startswith(_CODE_FILE))
        files = [name.removeprefix(_CODE_FILE) for name in followers]
        more = f" and {len(files) - _MAX_NAMED} more" if len(files) > _MAX_NAMED else ""
        named = f" in {', '.join(files[:_MAX_NAMED])}{more}" if files else ""
        return f"the code differs{named}"
    a, b = format_value(key, difference.a), format_value(key, difference.b)
    return f"{key.removesuffix('_bytes')} {a} -> {b}{format_derived_count(difference)}"


def format_derived_count(difference: ReadingPair) -> str:
    """Return how many differences follow from one, in brackets; "" if none do."""
    return describe_followers(len(difference.followers))


def describe_followers(count: int) -> str:
    """Return a number of differences that follow from one, in brackets; "" for none."""
    return f" (and {count} that depend{'s' if count == 1 else ''} on it)" if count else ""


def format_value(key: str, value: Any) -> str:
    """Return a reading's value in at most 60 characters."""
    if value is None:
        return "absent"
    if key.endswith("_bytes") and isinstance(value, int):
        return format_bytes(value)
    if isinstance(value, Mapping):
        value = [f"{name} {item}" for name, item in value.items()]
    text = ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
    if text.startswith("sha256:"):
        text = text[:19]
    return text if len(text) <= 60 else f"{text[:57]}..."


def describe_expected_values(change: CheckChange, comparison: ReportComparison) -> str:
    """Return the expected values of both sides if they explain the change; else ""."""
    if not change.declared:
        return ""
    check_id = change.id.partition(":")[0]
    causes = next((check.causes for check in CHECKS if check.id == check_id), ())
    sizes = [cause.endswith("_bytes") for cause in causes if not cause.endswith("_state")]
    unit = "_bytes" if sizes and all(sizes) else ""
    a, b = (format_value(unit, value) for value in change.declared)
    return f"{a} on {comparison.a.name}, {b} on {comparison.b.name}"


def describe_one_sided_failure(check: CheckChange | CheckPair, comparison: ReportComparison) -> str:
    """Return that a check fails on one side and neither passes nor fails on the other."""
    failing, other, status = comparison.a.name, comparison.b.name, check.b
    if check.a is not Status.FAIL:
        failing, other, status = other, failing, check.a
    relations = {Status.UNKNOWN: "is unknown on", None: "was not run on"}
    relation = relations.get(status, "does not apply to")
    return f"{check.id} {check.title} fails on {failing} and {relation} {other}"


def _broken(comparison: ReportComparison, broken: Sequence[CheckChange]) -> str:
    """Return the first check that breaks, its explanation, and the number of others."""
    first = broken[0]
    works, fails = comparison.a.name, comparison.b.name
    if first.worse != "b":
        works, fails = fails, works
    other_side = [change for change in broken if change.worse != first.worse]
    more, reverse = "", ""
    if count := len(broken) - len(other_side) - 1:
        more = f" (and {count} more)"
    if other_side:
        reverse = f"; {_name_failing(other_side)} only on {works}"
    return (
        f"works on {works}, fails on {fails}: {first.id} {first.title}{more}; the decisive "
        f"difference: {_decisive_difference(first, comparison)}{reverse}"
    )


def _decisive_difference(change: CheckChange, comparison: ReportComparison) -> str:
    if change.declared:
        return f"the declared values, {describe_expected_values(change, comparison)}"
    if not change.causes:
        # Packages that are in one lock only are not recorded on the other side.
        if comparison.a.lock != comparison.b.lock and change.message:
            return change.message
        suffix = f" ({change.message})" if change.message else ""
        return f"no recorded difference explains this{suffix}"
    first = change.causes[0]
    if first.key in _OPAQUE_READINGS and change.message:
        return change.message
    return describe_difference(
        first if change.worse == "b" else first._replace(a=first.b, b=first.a)
    )


def _list_differences(comparison: ReportComparison) -> Iterator[str]:
    """Yield the differences of two reports of which neither breaks a check of the other."""
    one_sided = comparison.one_sided_failures
    failed = [change for change in comparison.check_changes if Status.FAIL in (change.a, change.b)]
    named: list[CheckChange | CheckPair] = [*failed, *one_sided]
    named = named[:_MAX_NAMED]
    for check in named:
        yield describe_one_sided_failure(check, comparison)
    every: list[CheckChange | CheckPair] = [*comparison.check_changes, *one_sided]
    others = [check.id for check in every if check not in named]
    if others:
        names = ", ".join(others[:_MAX_NAMED])
        if len(others) > _MAX_NAMED:
            names += f" and {len(others) - _MAX_NAMED} more"
        noun = "check" if len(others) == 1 else "checks"
        yield f"{len(others)} {noun} with different results ({names})"
    identity = [pair for pair in comparison.differences if pair.kind is ReadingClass.IDENTITY]
    if identity:
        count = "1 difference between the environments:"
        if len(identity) > 1:
            count = f"{len(identity)} differences between the environments, the first:"
        packages = identity[0].key == "packages.digest"
        what = "different packages are installed: " if packages else ""
        yield f"{count} {what}{describe_difference(identity[0])}"


def _failing(comparison: ReportComparison) -> str:
    if both := comparison.failing_on_both:
        return f"; {_name_failing(both)} on both"
    if comparison.is_same or comparison.one_sided_failures:
        return ""
    if any(Status.FAIL in (change.a, change.b) for change in comparison.check_changes):
        return ""
    return "; no check fails"


def _name_failing(checks: Sequence[CheckChange | CheckPair]) -> str:
    title = f"{checks[0].id} {checks[0].title}".strip()
    return f"{title} and {len(checks) - 1} more fail" if len(checks) > 1 else f"{title} fails"
