"""Compares what a training takes with what every target of a spec has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from provision.commands.shared.load import LoadedSpec, load_without_rules
from provision.commands.shared.run_records import list_run_records, read_run_record
from provision.commands.shared.target_selection import select_targets
from provision.effects.system import Reader
from provision.errors import ExternalError, ProvisionError, Refused
from provision.field_types import parse_size
from provision.target_facts import target_facts
from provision.verification import Report
from provision.verification.fit import evaluate_target
from provision.verification.fit_model import FitSources, RunFigures, TargetFit
from provision.verification.report import find_tampering, read_report_file

GIB = 2**30
_SAME_RAM = 0.02
"""Another kernel may reserve this share of a machine's RAM more or less."""


@dataclass(frozen=True, slots=True)
class FitResult:
    """How a training fits the targets; `run` is the recorded run whose peaks were compared."""

    spec: str
    targets: tuple[TargetFit, ...]
    run: RunFigures | None

    @property
    def exit_code(self) -> int:
        """1 if the training does not fit a target, else 0."""
        return 1 if any(target.fits is False for target in self.targets) else 0


def fit(path: Path, targets: tuple[str, ...], record: Path | None, reader: Reader) -> FitResult:
    """Return how the training of a spec fits its targets.

    Args:
        path: the spec; rules may find errors in it, such as a machine that is too small.
        targets: names of targets; all of them if there are none.
        record: the record of a run; None for the newest one of the spec with peaks.
        reader: reads files and this machine.

    Raises:
        Refused: the needs of the training are unknown.
        SpecHasErrors: the spec is not valid.
        ProvisionError: the record is damaged.
    """
    loaded = load_without_rules(path, reader)
    run = read_figures(loaded, record, reader)
    names = select_targets(loaded, targets, everything=True)
    fits = tuple(evaluate(loaded, name, run, reader) for name in names)
    if not any(target.resources for target in fits):
        measured = "no run is recorded" if run is None else "no recorded run has a measured peak"
        raise Refused(
            "the resources that this training run needs are unknown",
            why="the spec declares neither a model nor memory or disk requirements, and "
            f"{measured}",
            hint=f"record a run with `{loaded.command('run', names[0])} -- PROGRAM`, or set "
            "`training.model`, `training.data.in_memory` or `requires.ram`",
        )
    return FitResult(str(path), fits, run)


def fit_of_recorded_run(
    loaded: LoadedSpec, names: tuple[str, ...], reader: Reader
) -> tuple[TargetFit, ...]:
    """Return how the newest recorded run fits some targets; () without a usable record."""
    try:
        run = read_figures(loaded, None, reader)
    except ProvisionError:
        return ()  # `provision fit` reports a damaged record
    if run is None:
        return ()
    return tuple(evaluate(loaded, name, run, reader) for name in names)


def read_figures(loaded: LoadedSpec, record: Path | None, reader: Reader) -> RunFigures | None:
    """Return the peaks of a record, by default of the newest one of any target with peaks.

    Without one, they are those of the command that a verification ran.
    """
    if record is not None:
        return _read_record(loaded, record, reader)
    newest = None
    for count, path in enumerate(list_run_records(loaded, loaded.spec.targets, reader)):
        figures = _read_record(loaded, path, reader)
        if figures.has_peaks:
            return replace(figures, newer_without_peaks=count)
        newest = newest or figures
    return _newest_command(loaded, reader) or newest


def _read_record(loaded: LoadedSpec, record: Path, reader: Reader) -> RunFigures:
    figures = RunFigures.from_record(str(record), read_run_record(record, reader))
    return replace(
        figures,
        is_of_other_spec=figures.spec != loaded.spec.name,
        ram_here=_other_ram_here(loaded, figures, reader),
    )


def _other_ram_here(loaded: LoadedSpec, run: RunFigures, reader: Reader) -> int | None:
    """Return the RAM of this machine if a local run had another amount."""
    is_elsewhere = run.target in loaded.spec.targets and not (
        target_facts(loaded.spec, loaded.facts, run.target).kind.is_this_machine
    )
    if is_elsewhere or not run.ram_limits:
        return None
    here = reader.machine_resources(loaded.path.resolve().parent, with_gpus=False).memory
    is_known = any(abs(limit - here) <= _SAME_RAM * here for limit in run.ram_limits)
    return None if is_known else here


def evaluate(loaded: LoadedSpec, name: str, run: RunFigures | None, reader: Reader) -> TargetFit:
    """Return how the training fits one target."""
    spec, facts = loaded.spec.for_target(name), loaded.facts
    target = target_facts(loaded.spec, facts, name)
    required = parse_size(spec.requires.ram) / GIB if spec.requires.ram else None
    target = target._replace(target=target.kind.chosen_target(target, required, facts))
    machine = None
    if target.kind.is_this_machine:
        machine = reader.machine_resources(loaded.path.resolve().parent, with_gpus=False)
    return evaluate_target(
        spec, target, facts, FitSources(_trusted_report(loaded, name, reader), machine, run)
    )


def _newest_command(loaded: LoadedSpec, reader: Reader) -> RunFigures | None:
    """Return the peaks of the declared command in the newest report of a target, if any."""
    figures = []
    for name in loaded.spec.targets:
        report = _trusted_report(loaded, name, reader)
        path = str(loaded.report_folder(name) / "report.json")
        found = RunFigures.from_report(path, report) if report is not None else None
        if found is not None:
            figures.append(found)
    return max(figures, key=lambda found: found.created, default=None)


def _trusted_report(loaded: LoadedSpec, name: str, reader: Reader) -> Report | None:
    """Return the last report of a target, None without a real and unchanged one."""
    path = loaded.report_folder(name) / "report.json"
    if not reader.exists(path):
        return None
    try:
        report = read_report_file(path, reader)
    except ExternalError:
        return None
    return None if report.subject.simulated or find_tampering(report) else report
