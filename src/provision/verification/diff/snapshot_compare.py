"""Comparison of two snapshots: problems of one side first, then what differs by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from fnmatch import fnmatchcase
from typing import Any

from provision.diagnostics import Severity
from provision.verification.diff.derived import Derivations
from provision.verification.diff.error_relevance import ErrorRelevance
from provision.verification.diff.layers import (
    Layer,
    Relevance,
    Weights,
    change_size,
    class_or_context,
    layer_of,
    relevance_of,
)
from provision.verification.diff.problems import Problem
from provision.verification.diff.snapshot import Snapshot
from provision.verification.diff.snapshot_model import Cause, Difference, SnapshotComparison
from provision.verification.diff.summary import format_value

_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.UNKNOWN, Severity.INFO)
_LAYERS = tuple(Layer)
_HIDING: tuple[tuple[str, str], ...] = (
    ("package.torchvision", "package.torch"),
    ("package.torchaudio", "package.torch"),
    ("gpu.*", "env.CUDA_VISIBLE_DEVICES"),
    ("nvml.*", "env.CUDA_VISIBLE_DEVICES"),
    ("gpu.*", "driver.error"),
    ("nvml.*", "driver.error"),
    ("driver.*", "driver.error"),
    ("hub.offline_by", "env.HF_HUB_OFFLINE"),
)
"""Readings that follow from a variable or a broken driver, in addition to those of reports."""
_WHY = {
    Layer.GPU: "the GPU and its driver decide which builds run, and how fast",
    Layer.TORCH: "each torch build supports only certain GPUs and drivers",
    Layer.PYTHON: "wheels are built for one minor release, and code for a newer release can fail",
    Layer.PACKAGES: "releases differ in their features and arguments",
    Layer.SYSTEM: "wheels need a C library that is at least as new as the one they were built for",
    Layer.VARIABLES: "the variable changes how programs run",
}


def compare_snapshots(
    a: Snapshot,
    b: Snapshot,
    problems: tuple[Sequence[Problem], Sequence[Problem]],
    relations: Sequence[Problem],
    weights: Weights,
    error: ErrorRelevance | None = None,
) -> SnapshotComparison:
    """Compare two snapshots; one compared with itself has no differences.

    Args:
        a: The first snapshot.
        b: The second snapshot.
        problems: The problems of each side.
        relations: The problems of programs that move from one side to the other.
        weights: The weights of the differences.
        error: Relates differences to an error; None without an error.
    """
    differences, one_sided, equal = _align(a, b, weights)
    violations = [
        *((problem, "a") for problem in _one_sided(problems[0], problems[1])),
        *((problem, "b") for problem in _one_sided(problems[1], problems[0])),
        *((problem, "") for problem in relations),
    ]
    linked = {key for problem, _ in violations for key in _linked_keys(problem, differences)}
    differences = _with_followers(differences, linked, a, b)
    causes = [_problem_cause(problem, side, differences) for problem, side in violations]
    followers = {key for difference in differences.values() for key in difference.followers}
    causes += [
        _plain_cause(difference, a, b)
        for difference in differences.values()
        if difference.relevance is Relevance.NOTABLE
        and difference.key not in linked
        and difference.key not in followers
    ]
    if error is not None:
        causes = _related(causes, differences, error, a, b)
    ranked = sorted(causes, key=lambda cause: _rank(cause, weights, error))
    ranked = list(_merged(_decisive(ranked)))
    shown = {difference.key for cause in ranked for difference in cause.differences}
    rest = [
        difference
        for difference in differences.values()
        if difference.key not in shown and difference.relevance is not Relevance.IGNORED
    ]
    keys = {(problem.id, problem.subject) for problem in problems[1]}
    return SnapshotComparison(
        a,
        b,
        tuple(ranked),
        tuple(item for item in rest if item.relevance is Relevance.NOTABLE),
        tuple(item for item in rest if item.relevance is Relevance.MINOR),
        tuple(problem for problem in problems[0] if (problem.id, problem.subject) in keys),
        one_sided,
        equal,
        error.summary if error is not None else None,
    )


def _align(
    a: Snapshot, b: Snapshot, weights: Weights
) -> tuple[dict[str, Difference], tuple[str, ...], int]:
    """Return the differences, the keys of one side only, and the number of equal values."""
    differences: dict[str, Difference] = {}
    one_sided, equal = [], 0
    for key in sorted({*a.values, *b.values}):
        if not (a.is_observed(key) and b.is_observed(key)):
            one_sided.append(key)
            continue
        first, second = a.values.get(key), b.values.get(key)
        if _is_equal(key, first, second):
            equal += 1
            continue
        relevance = relevance_of(key, first, second, weights)
        kind = class_or_context(key)
        differences[key] = Difference(key, kind, layer_of(key), relevance, first, second)
    return differences, tuple(one_sided), equal


def _is_equal(key: str, a: Any, b: Any) -> bool:
    # A capture has no values of variables.
    if key.startswith("env.") and "set" in (a, b) and None not in (a, b):
        return True
    return bool(a == b)


def _with_followers(
    differences: Mapping[str, Difference], linked: Set[str], a: Snapshot, b: Snapshot
) -> dict[str, Difference]:
    """Return the differences with those that follow from each.

    Nothing follows from a minor one, unless a problem is `linked` with it.
    """
    names = {*a.requirers, *b.requirers}
    nothing: frozenset[str] = frozenset()
    requirers = {
        name: a.requirers.get(name, nothing) | b.requirers.get(name, nothing) for name in names
    }
    derivations = Derivations(requirers, frozenset())
    notable = [
        key
        for key, item in differences.items()
        if key in linked or item.relevance is Relevance.NOTABLE
    ]
    followers: dict[str, list[str]] = {}
    for key in differences:
        parents = (
            parent
            for pattern, parent in _HIDING
            if fnmatchcase(key, pattern) and parent in differences and parent != key
        )
        root = next(parents, "") or derivations.root_of(key, (), [*notable, key])
        if root != key:
            followers.setdefault(root, []).append(key)
    return {
        key: item._replace(followers=tuple(followers.get(key, ())))
        for key, item in differences.items()
    }


def _one_sided(own: Iterable[Problem], others: Iterable[Problem]) -> Iterator[Problem]:
    known = {(problem.id, problem.subject) for problem in others}
    yield from (problem for problem in own if (problem.id, problem.subject) not in known)


def _related(
    causes: Sequence[Cause],
    differences: Mapping[str, Difference],
    error: ErrorRelevance,
    a: Snapshot,
    b: Snapshot,
) -> list[Cause]:
    """Return causes with their relation to an error, and the differences that it names."""
    shown = {difference.key for cause in causes for difference in cause.differences}
    named = sorted(key for key in differences if key not in shown and error.names(key))
    every = [*causes, *(_plain_cause(differences[key], a, b) for key in named)]
    return [cause._replace(error=error.relate(cause)) for cause in every]


def _linked_keys(problem: Problem, differences: Iterable[str]) -> list[str]:
    """Return the differences that a problem follows from, the decisive one first."""
    keys = (key for pattern in problem.keys for key in differences if fnmatchcase(key, pattern))
    return list(dict.fromkeys(keys))


def _problem_cause(problem: Problem, side: str, differences: Mapping[str, Difference]) -> Cause:
    linked = tuple(differences[key] for key in _linked_keys(problem, differences))
    return Cause(
        problem.id,
        side,
        problem.severity,
        linked[0].layer if linked else layer_of(problem.keys[0]),
        problem.message,
        problem.why,
        problem.fix,
        problem.source,
        linked,
        problem.ids,
        problem.subject,
    )


def _plain_cause(difference: Difference, a: Snapshot, b: Snapshot) -> Cause:
    """Return a difference that matters although no side violates a known requirement."""
    key, layer = difference.key, difference.layer
    name = key.partition(".")[2] if key.startswith(("package.", "loaded.", "env.")) else key
    first, second = (format_value(key, value) for value in (difference.a, difference.b))
    message = f"{name}: {first} on {a.name}, {second} on {b.name}"
    fix = "use the same version on both sides"
    if key.startswith("package."):
        fix = _package_fix(name, difference, a, b)
    return Cause("", "", Severity.INFO, layer, message, _WHY.get(layer, ""), fix, "", (difference,))


def _package_fix(name: str, difference: Difference, a: Snapshot, b: Snapshot) -> str:
    if difference.a is None or difference.b is None:
        version, lacking = difference.a or difference.b, a if difference.a is None else b
        return f"install {name}=={version} on {lacking.name}, or remove it from the other side"
    return f"install {name}=={difference.a} or {name}=={difference.b} on both sides"


def _rank(cause: Cause, weights: Weights, error: ErrorRelevance | None) -> tuple[object, ...]:
    keys = [difference.key for difference in cause.differences[:1]]
    sizes = [
        change_size(item.a, item.b) if item.key.startswith("package.") else 1
        for item in cause.differences[:1]
    ]
    return (
        -(error.score(cause) if error is not None else 0),
        not cause.differences,
        _SEVERITIES.index(cause.severity),
        -max(map(weights.of, keys), default=0),
        -max(sizes, default=0),
        _LAYERS.index(cause.layer),
        keys,
        cause.side,
    )


def _decisive(causes: Sequence[Cause]) -> list[Cause]:
    """Return the causes, without mere differences if a problem of severity error is among them."""
    is_broken = any(cause.id and cause.severity is Severity.ERROR for cause in causes)
    return [cause for cause in causes if cause.id or cause.error or not is_broken]


def _merged(causes: Sequence[Cause]) -> Iterator[Cause]:
    """Yield causes; those whose first difference is already that of another are named in it."""
    first: dict[str, int] = {}
    merged: list[Cause] = []
    for cause in causes:
        key = cause.differences[0].key if cause.differences else ""
        if key and key in first and merged[first[key]].side == cause.side:
            earlier = merged[first[key]]
            merged[first[key]] = earlier._replace(also=(*earlier.also, cause.message))
            continue
        if key:
            first.setdefault(key, len(merged))
        merged.append(cause)
    yield from merged
