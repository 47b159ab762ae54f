"""Comparison of two reports as values: readings and checks side by side, and differences."""

from __future__ import annotations

from typing import Any, NamedTuple

from provision.agent.probe.model import ReadingClass, Status

_PASSING = (Status.PASS, Status.WARN)


class ReadingPair(NamedTuple):
    """A reading of both sides (None: missing), its class, and the differences that follow from it.

    `differs` is None if only one side has it.
    """

    key: str
    kind: ReadingClass
    a: Any
    b: Any
    differs: bool | None
    followers: tuple[str, ...] = ()


class CheckChange(NamedTuple):
    """A check with two statuses.

    `worse` names the side ("a" or "b") of `message` and `fix`, `causes` are the differences that
    can explain it. `declared` are both expected values if they and no reading explain it.
    """

    id: str
    title: str
    a: Status
    b: Status
    worse: str
    required: bool
    message: str
    fix: str
    causes: tuple[ReadingPair, ...]
    followers: tuple[str, ...] = ()
    declared: tuple[Any, ...] = ()

    @property
    def breaks(self) -> bool:
        """True if it passes on one side and fails on the other."""
        return Status.FAIL in (self.a, self.b) and (self.a in _PASSING or self.b in _PASSING)


class CheckPair(NamedTuple):
    """A check of both sides; a side that did not run it has no status and no message."""

    id: str
    group: str
    title: str
    a: Status | None
    b: Status | None
    messages: tuple[str, str]


class ReportSide(NamedTuple):
    """One of the two reports; `lock` is the digest of its locked environment."""

    name: str
    verdict: str
    identity: str
    spec: str = ""
    lock: str = ""


class ReportComparison(NamedTuple):
    """Differences and changed checks of two reports, the decisive ones first.

    Only one report has `one_sided_keys`; they are not differences. `tampered` names the sides
    whose report was changed after the probe wrote it.
    """

    a: ReportSide
    b: ReportSide
    check_changes: tuple[CheckChange, ...]
    differences: tuple[ReadingPair, ...]
    one_sided_keys: tuple[str, ...]
    equal_count: int
    readings: tuple[ReadingPair, ...]
    checks: tuple[CheckPair, ...]
    tampered: tuple[str, ...] = ()

    @property
    def failing_on_both(self) -> tuple[CheckPair, ...]:
        """The checks that fail on both sides."""
        return tuple(pair for pair in self.checks if pair.a is pair.b is Status.FAIL)

    @property
    def one_sided_failures(self) -> tuple[CheckPair, ...]:
        """The checks that fail on one side and were not run on the other."""
        return tuple(pair for pair in self.checks if {pair.a, pair.b} == {Status.FAIL, None})

    @property
    def is_comparable(self) -> bool:
        """True if both sides have at least one identity reading in common."""
        return any(
            row.kind is ReadingClass.IDENTITY and row.differs is not None for row in self.readings
        )

    @property
    def is_same(self) -> bool:
        """True if no identity reading and no status differs, and no report was changed."""
        return (
            self.is_comparable
            and not self.tampered
            and not self.check_changes
            and not any(pair.kind is ReadingClass.IDENTITY for pair in self.differences)
        )
