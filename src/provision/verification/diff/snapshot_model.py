"""Comparison of two snapshots as values: causes in their order, differences, shared problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from provision.agent.probe.model import ReadingClass
from provision.diagnostics import Severity
from provision.verification.diff.layers import Layer, Relevance
from provision.verification.diff.problems import Problem
from provision.verification.diff.snapshot import Snapshot


class Difference(NamedTuple):
    """A value that differs (None: absent), and the keys of the differences that follow from it."""

    key: str
    kind: ReadingClass
    layer: Layer
    relevance: Relevance
    a: Any
    b: Any
    followers: tuple[str, ...] = ()


class Cause(NamedTuple):
    """A difference that matters.

    `side` names the side ("a" or "b") with the problem, "" if it is unknown which side is wrong.
    `subject` names the packages of a problem. `error` is its relation to the error, "" for none.
    `also` are further problems that follow from the same difference.
    """

    id: str
    side: str
    severity: Severity
    layer: Layer
    message: str
    why: str
    fix: str
    source: str
    differences: tuple[Difference, ...]
    ids: tuple[str, ...] = ()
    subject: str = ""
    error: str = ""
    also: tuple[str, ...] = ()


class ErrorSummary(NamedTuple):
    """The error that the differences are compared with: its line, its usual cause and fix."""

    line: str
    cause: str
    fix: str
    symptom: str


class SnapshotComparison(NamedTuple):
    """Causes in their order, and the remaining differences.

    `differences` matter less than the causes, `minor` rarely matter, `shared` problems are on both
    sides, and `one_sided_keys` were observed on one side only.
    """

    a: Snapshot
    b: Snapshot
    causes: tuple[Cause, ...]
    differences: tuple[Difference, ...]
    minor: tuple[Difference, ...]
    shared: tuple[Problem, ...]
    one_sided_keys: tuple[str, ...]
    equal_count: int
    error: ErrorSummary | None = None

    @property
    def names(self) -> Mapping[str, str]:
        """The names of the sides by letter."""
        return {"a": self.a.name, "b": self.b.name}

    @property
    def is_same(self) -> bool:
        """True if nothing that matters differs, and both documents can be trusted."""
        distrusted = self.a.distrust or self.b.distrust
        return not self.causes and not self.differences and not distrusted

    @property
    def is_comparable(self) -> bool:
        """True if both sides have values in common."""
        return bool(self.equal_count or self.causes or self.differences or self.minor)
