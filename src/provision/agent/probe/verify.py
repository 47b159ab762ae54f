"""One verification: runs the stages, collects their readings, judges, and makes the report."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from .catalogue import (
    STAGE_ENVIRONMENT,
    STAGES,
    Stage,
    group_stages_by_process,
    is_applicable,
    select_checks,
)
from .expectations import Expectations
from .model import JsonObject, Judgement, SelectedCheck, Status
from .own_code import own_program
from .redactor import Redactor
from .stage import StageProgress
from .supervisor import StageProcess, StageRun, StageTask

EventCallback = Callable[[JsonObject], None]
"""Is told of each stage's start and end, as the JSON objects of `--events`."""


@dataclass(slots=True)
class _Gathered:
    """Readings and errors of all stages so far."""

    seen: JsonObject = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    raised: dict[str, dict[str, str]] = field(default_factory=dict)
    deaths: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    runs: list[StageRun] = field(default_factory=list)


def verify(
    expected: Expectations,
    source: Path,
    only: frozenset[str],
    watch: EventCallback,
    environ: Mapping[str, str],
) -> JsonObject:
    """Run every stage that has a check; return the report. `source` is the expectations file."""
    with TemporaryDirectory(prefix="provision-probe-", ignore_cleanup_errors=True) as scratch:
        verification = _Verification(
            expected, source, select_checks(expected, only), watch, environ, Path(scratch)
        )
        for group in group_stages_by_process(expected):
            verification.observe(group)
        from .report import JudgedCheck, make_report

        judged = [
            JudgedCheck(
                one, verification.judge(one), verification.gathered.seconds.get(one.id, 0.0)
            )
            for one in verification.checks
        ]
        return make_report(
            expected,
            judged,
            verification.gathered.seen,
            verification.gathered.runs,
            verification.redactor,
            partial=bool(only),
        )


class _Verification:
    """One verification under way."""

    def __init__(
        self,
        expected: Expectations,
        source: Path,
        checks: tuple[SelectedCheck, ...],
        watch: EventCallback,
        environ: Mapping[str, str],
        scratch: Path,
    ) -> None:
        self.expected, self.source, self.checks, self.scratch = expected, source, checks, scratch
        self.watch, self.environ = watch, environ
        self.redactor = Redactor.of(environ, expected.secrets)
        self.deadline = time.monotonic() + expected.timeout_s
        self.gathered = _Gathered()

    def judge(self, one: SelectedCheck) -> Judgement:
        # The judges are many files to read: they are read while the first process already observes.
        from .judging import ObservationLog, judge

        found = self.gathered
        return judge(
            one,
            self.expected,
            found.seen,
            ObservationLog(frozenset(found.done), found.raised, found.deaths, found.absent),
        )

    def observe(self, group: Sequence[Stage]) -> None:
        """Run a group of stages in one process; after a death, the rest in a new one."""
        left = [stage for stage in group if self._ready(stage)]
        while left:
            if time.monotonic() >= self.deadline:
                late = [one.id for stage in left for one in self._ready(stage)]
                self.gathered.absent.update(
                    dict.fromkeys(
                        late,
                        f"not observed: the time limit of {self.expected.timeout_s:g} s "
                        "was used up",
                    )
                )
                return
            legs = [self._leg(stage) for stage in left]
            process = StageProcess(
                legs, self.deadline, self.redactor, self._say_started, self._gather
            )
            runs = process.run(self._command(left, legs), self._environment(left[0]))
            left = left[len(runs) :]

    def _ready(self, stage: Stage) -> list[SelectedCheck]:
        ours = [
            one
            for one in self.checks
            if one.check.stage == stage.name and is_applicable(one.check, self.expected)
        ]
        return [one for one in ours if not _blocked(one, ours, self.gathered)]

    def _leg(self, stage: Stage) -> StageTask:
        return StageTask(
            stage.name,
            stage.timeout_s,
            self.scratch / f"{stage.name}.json",
            self.scratch / f"{stage.name}.log",
        )

    def _command(self, stages: Sequence[Stage], legs: Sequence[StageTask]) -> list[str]:
        command = [
            sys.executable,
            "-u",
            *_probe_command(),
            "stage",
            *(stage.name for stage in stages),
        ]
        command += ["--expectations", str(self.source), "--scratch", str(self.scratch)]
        command += [part for leg in legs for part in ("--out", str(leg.progress_file))]
        return command + [
            part for stage in stages for one in self._ready(stage) for part in ("--only", one.id)
        ]

    def _environment(self, stage: Stage) -> dict[str, str]:
        return (
            dict(self.environ)
            if stage.process == "plain"
            else {**self.environ, **STAGE_ENVIRONMENT}
        )

    def _say_started(self, name: str) -> None:
        self.watch({"event": "stage", "stage": name, "title": _TITLES[name], "status": "started"})

    def _gather(self, run: StageRun) -> None:
        ready = self._ready(next(stage for stage in STAGES if stage.name == run.name))
        _add(self.gathered, run, StageProgress.load(self.scratch / f"{run.name}.json"), ready)
        self.watch(
            {
                "event": "stage",
                "stage": run.name,
                "title": _TITLES[run.name],
                "status": "finished",
                "seconds": round(run.wall_s, 2),
                "failed": [self.judge(one).status for one in ready].count(Status.FAIL),
            }
        )


def _add(
    gathered: _Gathered, run: StageRun, fragment: StageProgress, ready: Sequence[SelectedCheck]
) -> None:
    # What a stage printed matters when something in it went wrong; otherwise it is only a longer
    # report.
    gathered.runs.append(run if fragment.raised or not fragment.ended else replace(run, tail=""))
    gathered.seen.update(fragment.seen)
    gathered.done.update(fragment.done)
    gathered.raised.update(fragment.raised)
    gathered.seconds.update(fragment.seconds)
    if fragment.ended:
        return
    if fragment.running is not None:
        gathered.deaths[fragment.running] = (
            f"{run.how}, on {fragment.where}" if fragment.where else run.how
        )
        gathered.seconds[fragment.running] = run.wall_s
    late = [one.id for one in ready if one.id not in fragment.done and one.id != fragment.running]
    gathered.absent.update(dict.fromkeys(late, f"not observed: the stage {run.how}"))


def _blocked(one: SelectedCheck, ours: Sequence[SelectedCheck], gathered: _Gathered) -> bool:
    here = {other.id for other in ours}
    return any(
        before not in here and (before not in gathered.done or before in gathered.raised)
        for before in one.check.after
    )


def _probe_command() -> list[str]:
    archive = own_program()
    return [os.path.abspath(archive)] if archive else ["-m", __package__]


_TITLES = {stage.name: stage.title for stage in STAGES}
