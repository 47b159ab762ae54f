"""What two reports say together, as values: readings and checks side by side, what differs, and
what ended otherwise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from provision.agent.probe.model import ReadingClass, Status

_PASSING = (Status.PASS, Status.WARN)


class ReadingDifference(NamedTuple):
    """A reading with two values (None: it is not there), what a difference in it means, and the
    keys of those that follow from it.
    """

    key: str
    kind: ReadingClass
    a: Any
    b: Any
    followers: tuple[str, ...] = ()


class CheckChange(NamedTuple):
    """A check with another status. `worse` names the side ("a" or "b") whose `message` and `fix`
    are told; `causes` are the differences that can explain it.

    `declared` is what each side was expected to be, where that and no reading sets them apart;
    () elsewhere.
    """

    id: str
    title: str
    a: str
    b: str
    worse: str
    required: bool
    message: str
    fix: str
    causes: tuple[ReadingDifference, ...]
    followers: tuple[str, ...] = ()
    declared: tuple[Any, ...] = ()

    @property
    def breaks(self) -> bool:
        """Whether it holds on one side and fails on the other."""
        return Status.FAIL in (self.a, self.b) and (self.a in _PASSING or self.b in _PASSING)


class ReadingPair(NamedTuple):
    """A reading of both sides, or of one; `differs` is None where only one side has it."""

    key: str
    kind: ReadingClass
    a: Any
    b: Any
    differs: bool | None


class CheckPair(NamedTuple):
    """A check as both sides ended it: status and message, "" on a side that did not ask it."""

    id: str
    group: str
    title: str
    a: str
    b: str
    messages: tuple[str, str]


class ReportSide(NamedTuple):
    """One of the two: how it is called, its verdict, its identity digest, the name of its spec, the
    digest of what its lock holds for it.
    """

    name: str
    verdict: str
    identity: str
    spec: str = ""
    lock: str = ""


class ReportComparison(NamedTuple):
    """What two reports say together: checks that ended differently and readings that differ, the
    telling ones first.

    `onesided` are keys that only one report has, which is no difference: the other did not look.
    `alike` counts the readings that are equal.
    `changed` names the sides whose report was changed after the probe wrote it: what such a
    report tells proves nothing.
    """

    a: ReportSide
    b: ReportSide
    check_changes: tuple[CheckChange, ...]
    differences: tuple[ReadingDifference, ...]
    one_sided_keys: tuple[str, ...]
    equal_count: int
    readings: tuple[ReadingPair, ...]
    checks: tuple[CheckPair, ...]
    tampered: tuple[str, ...] = ()

    @property
    def failing_on_both(self) -> tuple[CheckPair, ...]:
        """The checks that fail on both sides."""
        return tuple(pair for pair in self.checks if pair.a == pair.b == Status.FAIL)

    @property
    def one_sided_failures(self) -> tuple[CheckPair, ...]:
        """The checks that fail on one side and were not asked on the other, which is no difference
        between the two.
        """
        return tuple(pair for pair in self.checks if {pair.a, pair.b} == {Status.FAIL.value, ""})

    @property
    def is_comparable(self) -> bool:
        """Whether there is a reading of identity that both sides took: without one nothing is known
        of the two.
        """
        return any(
            row.kind is ReadingClass.IDENTITY and row.differs is not None for row in self.readings
        )

    @property
    def is_same(self) -> bool:
        """Whether no identity reading and no check's status differs, of two reports that are as the
        probe wrote them.
        """
        return (
            self.is_comparable
            and not self.tampered
            and not self.check_changes
            and not any(one.kind is ReadingClass.IDENTITY for one in self.differences)
        )
