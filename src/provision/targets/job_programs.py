"""Capability of drivers whose targets run the user's programs as jobs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from provision.effects.local import MonitorRequest
from provision.effects.system import Reader
from provision.kinds.base import Refusal
from provision.state import Ledger, State
from provision.targets.base import Journal
from provision.targets.context import TargetContext


@dataclass(frozen=True, slots=True)
class JobResult:
    """The end of a program in a job: its exit code as a shell shows it, and the record of its use.

    `record` is None if nothing was recorded.
    """

    code: int
    record: Path | None


@runtime_checkable
class RunsJobs(Protocol):
    """Starts the user's programs as jobs, which go on without us (`provision run`, `attach`)."""

    def find_job_refusals(
        self, context: TargetContext, ledger: Ledger, reader: Reader
    ) -> tuple[Refusal, ...]:
        """Return every field of the spec that a job cannot honour. May block on the network."""

    def select_ranks(self, context: TargetContext, text: str) -> tuple[int, ...] | None:
        """Return the ranks of the machines whose output is shown; None for all.

        Raises:
            Refused: there is no machine of this rank.
        """

    def start_job(
        self,
        context: TargetContext,
        argv: tuple[str, ...],
        journal: Journal,
        monitor: MonitorRequest | None,
    ) -> None:
        """Create the job of a program. May block for minutes.

        Args:
            context: the target with its lock.
            argv: the program and its arguments.
            journal: the ledger, locked.
            monitor: the record of the run to write once it has ended; None for no record.

        Raises:
            Refused: a program runs already, or this one cannot be started.
            ExternalError: no job was created, or that is not known.
        """

    def follow_job(
        self,
        context: TargetContext,
        open_journal: Callable[[], AbstractContextManager[Journal]],
        ranks: tuple[int, ...] | None,
    ) -> JobResult:
        """Show the output of the recorded program until it ends. May block for days.

        `open_journal` locks the ledger, for the moments in which it is changed.

        Raises:
            Refused: no program is recorded.
            ExternalError: the job ended without the end of its program.
        """

    def find_job(self, context: TargetContext, state: State) -> str:
        """Return the notice about a recorded program that may still run; "" without one."""
