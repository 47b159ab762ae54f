"""What two reports say together, as values: readings and checks side by side, what differs, and what ended otherwise."""

from __future__ import annotations

from typing import Any, NamedTuple

from provision.probe.values import ReadingClass, Status

_FINE = (Status.PASS, Status.WARN)


class Difference(NamedTuple):
    """A reading with two values (None: it is not there), what a difference in it means, and the keys of those that follow from it."""

    key: str
    kind: ReadingClass
    a: Any
    b: Any
    followers: tuple[str, ...] = ()


class Turn(NamedTuple):
    """A check with another status. `worse` names the side ("a" or "b") whose `message` and `fix` are told; `causes` are the differences that can explain it.

    `declared` is what each side was expected to be, where that and no reading sets them apart; () elsewhere.
    """

    id: str
    title: str
    a: str
    b: str
    worse: str
    required: bool
    message: str
    fix: str
    causes: tuple[Difference, ...]
    followers: tuple[str, ...] = ()
    declared: tuple[Any, ...] = ()

    @property
    def breaks(self) -> bool:
        """Whether it holds on one side and fails on the other."""
        return Status.FAIL in (self.a, self.b) and (self.a in _FINE or self.b in _FINE)


class Aligned(NamedTuple):
    """A reading of both sides, or of one; `differs` is None where only one side has it."""

    key: str
    kind: ReadingClass
    a: Any
    b: Any
    differs: bool | None


class Pair(NamedTuple):
    """A check as both sides ended it: status and message, "" on a side that did not ask it."""

    id: str
    group: str
    title: str
    a: str
    b: str
    told: tuple[str, str]


class Side(NamedTuple):
    """One of the two: how it is called, its verdict, its identity digest, the name of its spec, the digest of what its lock holds for it."""

    name: str
    verdict: str
    identity: str
    spec: str = ""
    lock: str = ""


class Comparison(NamedTuple):
    """What two reports say together: checks that ended differently and readings that differ, the telling ones first.

    `onesided` are keys that only one report has, which is no difference: the other did not look. `alike` counts the readings that are equal.
    `changed` names the sides whose report was changed after the probe wrote it: what such a report tells proves nothing.
    """

    a: Side
    b: Side
    turns: tuple[Turn, ...]
    differences: tuple[Difference, ...]
    onesided: tuple[str, ...]
    alike: int
    readings: tuple[Aligned, ...]
    checks: tuple[Pair, ...]
    changed: tuple[str, ...] = ()

    @property
    def failing(self) -> tuple[Pair, ...]:
        """The checks that fail on both sides."""
        return tuple(pair for pair in self.checks if pair.a == pair.b == Status.FAIL)

    @property
    def unasked(self) -> tuple[Pair, ...]:
        """The checks that fail on one side and were not asked on the other, which is no difference between the two."""
        return tuple(pair for pair in self.checks if {pair.a, pair.b} == {Status.FAIL.value, ""})

    @property
    def compared(self) -> bool:
        """Whether there is a reading of identity that both sides took: without one nothing is known of the two."""
        return any(row.kind is ReadingClass.IDENTITY and row.differs is not None for row in self.readings)

    @property
    def same(self) -> bool:
        """Whether no identity reading and no check's status differs, of two reports that are as the probe wrote them."""
        return self.compared and not self.changed and not self.turns and not any(one.kind is ReadingClass.IDENTITY for one in self.differences)
