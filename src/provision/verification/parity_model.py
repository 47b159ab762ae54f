"""Parity as values: targets with their evidence, statements, and the result over all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from provision.verification.report import Report


class ReportStanding(StrEnum):
    """The worth of a target's last report."""

    VERIFIED = "verified"
    FAILED = "failed"
    UNVERIFIED = "unverified"
    SIMULATED = "simulated"
    STALE = "stale"
    DAMAGED = "damaged"
    MISSING = "no report"


class StatementResult(StrEnum):
    """The result of a statement; `apart` if the lock declares the difference that was observed."""

    EQUAL = "equal"
    DIFFERS_AS_DECLARED = "apart"
    DIFFERS = "differs"
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True)
class DeclaredEnvironment:
    """The lock's promises for one target.

    `driver` is the oldest driver that the torch build runs on. `builds` are conda's builds, by
    package, of those packages that conda installs in place of the package index.
    """

    python: str
    versions: Mapping[str, str]
    flavour: str | None
    driver: str | None
    builds: Mapping[str, str] = field(default_factory=dict)

    @property
    def cuda(self) -> str | None:
        """The CUDA of the torch build ("12.8" of cu128), None without one."""
        digits = (self.flavour or "").removeprefix("cu")
        return f"{digits[:-1]}.{digits[-1]}" if digits.isdigit() else None


@dataclass(frozen=True, slots=True)
class ParityTarget:
    """A target, its declared environment (None: not locked), and its report if that counts.

    `why` is the reason why the report does not count, `prove` the command that would prove it,
    `at` the report's date. `elsewhere` describes a verification on the target's image, which
    proves no statement about the target.
    """

    target: str
    kind: str
    standing: ReportStanding
    declared: DeclaredEnvironment | None = None
    report: Report | None = None
    why: str = ""
    prove: str = ""
    carried: bool = False
    """True for the report of an exported probe."""
    at: str = ""
    elsewhere: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """A declaration of the lock, and what was observed on each target with a report."""

    subject: str
    result: StatementResult
    declared: str
    observed: Mapping[str, str]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Parity:
    """All statements about all targets.

    `undeclared` are differences of identity that the lock does not cover. Without a lock, of two
    documents, nothing is declared: a statement is `equal` if no difference matters, and
    `undeclared` are the harmless differences.
    """

    targets: tuple[ParityTarget, ...]
    statements: tuple[Statement, ...]
    undeclared: tuple[str, ...] = ()
    has_lock: bool = True

    @property
    def is_alone(self) -> bool:
        """True for a single target, which is compared with the lock only."""
        return len(self.targets) == 1

    @property
    def result(self) -> StatementResult:
        """The weightiest result: `differs`, then `unproven`, else `equal`.

        A single target is equal to nothing: without a difference it is `unproven`.
        """
        results = {statement.result for statement in self.statements}
        if self.is_alone:
            results.add(StatementResult.UNPROVEN)
        for result in (StatementResult.DIFFERS, StatementResult.UNPROVEN):
            if result in results:
                return result
        return StatementResult.EQUAL

    @property
    def exit_code(self) -> int:
        """0 proven, 1 a proven difference, 3 not yet proven."""
        return {StatementResult.DIFFERS: 1, StatementResult.UNPROVEN: 3}.get(self.result, 0)
