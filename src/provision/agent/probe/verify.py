"""One verification: runs the stages, collects their readings, judges, and makes the report."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .catalogue import (
    AS_THE_JOB,
    STAGE_ENVIRONMENT,
    STAGES,
    Stage,
    group_stages_by_process,
    is_applicable,
    select_checks,
)
from .expectations import Expectations
from .model import Environ, JsonObject, Judgement, ObservationLog, Readings, SelectedCheck, Status
from .own_code import own_command
from .redactor import Redactor
from .stage import StageProgress
from .supervisor import StageProcess, StageRun, StageTask

EventCallback = Callable[[JsonObject], None]
"""Receives each stage's start and end, as the JSON objects of `--events`."""


def verify(
    expected: Expectations,
    source: Path,
    only: frozenset[str],
    watch: EventCallback,
    environ: Environ,
) -> JsonObject:
    """Run every stage that has a check; return the report. `source` is the expectations file."""
    with TemporaryDirectory(prefix="provision-probe-", ignore_cleanup_errors=True) as scratch:
        verification = _Verification(
            expected, source, select_checks(expected, only), watch, environ, Path(scratch)
        )
        for group in group_stages_by_process(expected):
            verification.observe(group)
        from .report import JudgedCheck, make_report

        return make_report(
            expected,
            [
                JudgedCheck(check, verification.judge(check), verification.seconds.get(check.id, 0))
                for check in verification.checks
            ],
            verification.seen,
            verification.runs,
            verification.redactor,
            partial=bool(only),
        )


class _Verification:
    """One verification under way, with the readings of all stages so far."""

    def __init__(
        self,
        expected: Expectations,
        source: Path,
        checks: tuple[SelectedCheck, ...],
        watch: EventCallback,
        environ: Environ,
        scratch: Path,
    ) -> None:
        self.expected, self.source, self.checks, self.scratch = expected, source, checks, scratch
        self.watch, self.environ = watch, environ
        self.redactor = Redactor.of(environ, expected.secrets)
        self.deadline = time.monotonic() + expected.timeout_s
        self.seen: Readings = {}
        self.log = ObservationLog()
        self.seconds: dict[str, float] = {}
        self.runs: list[StageRun] = []

    def judge(self, check: SelectedCheck) -> Judgement:
        # The judges are many files to read: they are read while the first process already observes.
        from .judging import judge

        return judge(check, self.expected, self.seen, self.log)

    def observe(self, group: Sequence[Stage]) -> None:
        """Run a group of stages in one process; after a death, the rest in a new one."""
        stages = [stage for stage in group if self._ready(stage.name)]
        while stages:
            if time.monotonic() >= self.deadline:
                reason = (
                    f"not observed: the time limit of {self.expected.timeout_s:g} s was reached"
                )
                for stage in stages:
                    self.log.absent.update(dict.fromkeys(self._ready(stage.name), reason))
                return
            tasks = [
                StageTask(
                    stage.name,
                    stage.timeout_s,
                    self.scratch / f"{stage.name}.json",
                    self.scratch / f"{stage.name}.log",
                )
                for stage in stages
            ]
            process = StageProcess(
                tasks,
                self.deadline,
                self.redactor,
                lambda name: self._report(name, status="started"),
                self._gather,
            )
            environ = {**self.environ, **STAGE_ENVIRONMENT}
            runs = process.run(
                self._command(tasks),
                self.environ if stages[0].process in AS_THE_JOB else environ,
            )
            stages = stages[len(runs) :]

    def _ready(self, stage: str) -> list[str]:
        """Return the checks of a stage whose preceding checks of other stages have worked."""
        ours = {
            check.id: check.check.after
            for check in self.checks
            if check.check.stage == stage and is_applicable(check.check, self.expected)
        }
        worked = self.log.done - self.log.raised.keys() | ours.keys()
        return [check for check, after in ours.items() if worked.issuperset(after)]

    def _command(self, tasks: Sequence[StageTask]) -> list[str]:
        names = [task.name for task in tasks]
        command = [sys.executable, "-u", *own_command(), "stage", *names]
        command += ["--expectations", str(self.source), "--scratch", str(self.scratch)]
        for task in tasks:
            command += ["--out", str(task.progress_file)]
            for check in self._ready(task.name):
                command += ["--only", check]
        return command

    def _report(self, name: str, **event: Any) -> None:
        self.watch({"event": "stage", "stage": name, "title": _TITLES[name], **event})

    def _gather(self, run: StageRun) -> None:
        ready = self._ready(run.name)
        self._add(run, StageProgress.load(self.scratch / f"{run.name}.json"), ready)
        judged = [self.judge(check).status for check in self.checks if check.id in ready]
        self._report(
            run.name,
            status="finished",
            seconds=round(run.wall_s, 2),
            failed=judged.count(Status.FAIL),
        )

    def _add(self, run: StageRun, progress: StageProgress, ready: Sequence[str]) -> None:
        # What a stage printed matters when something in it went wrong; otherwise it is only a
        # longer report.
        keep_output = progress.raised or not progress.ended
        self.runs.append(run if keep_output else replace(run, tail=""))
        self.seen.update(progress.seen)
        self.log.done.update(progress.done)
        self.log.raised.update(progress.raised)
        self.seconds.update(progress.seconds)
        if progress.ended:
            return
        if progress.running is not None:
            where = f", on {progress.where}" if progress.where else ""
            self.log.deaths[progress.running] = f"{run.how}{where}"
            self.seconds[progress.running] = run.wall_s
        late = [check for check in ready if check not in (*progress.done, progress.running)]
        self.log.absent.update(dict.fromkeys(late, f"not observed: the stage {run.how}"))


_TITLES = {stage.name: stage.title for stage in STAGES}
