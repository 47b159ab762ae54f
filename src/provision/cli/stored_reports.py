"""Reports that a command line names: a report.json, or the stored reports of a spec's targets."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple

from provision.cli.sandbox_hints import sandbox_folder
from provision.commands.shared.load import LoadedSpec, load_spec
from provision.commands.shared.target_plans import select_targets
from provision.effects.system import Reader
from provision.errors import Refused, UsageError
from provision.verification import Report
from provision.verification.report import read_report_file


class StoredReport(NamedTuple):
    """A report and its file."""

    report: Report
    path: Path


def read_stored_reports(
    path: Path, targets: tuple[str, ...], reader: Reader
) -> tuple[StoredReport, ...]:
    """Return the report.json at `path`, or the stored reports of a spec's targets.

    Raises:
        Refused: a target that the command line names has no report, or no target has one.
        UsageError: targets of a report.json.
    """
    if path.suffix == ".json":
        if targets:
            raise UsageError(
                f"--target chooses among the targets of a spec, and {path} is a report",
                hint="leave --target out",
            )
        return (StoredReport(read_report_file(path, reader), path),)
    loaded = load_spec(path, reader)
    paths = [
        loaded.folder / "reports" / f"{loaded.stem}.{name}" / "report.json"
        for name in select_targets(loaded, targets, everything=True)
    ]
    stored = [path for path in paths if reader.exists(path)]
    missing = next((path for path in paths if path not in stored), None)
    if missing is not None and (targets or not stored):
        raise _missing_report(missing, loaded, reader)
    return tuple(StoredReport(read_report_file(path, reader), path) for path in stored)


def single_report(reports: tuple[StoredReport, ...], document: str) -> StoredReport:
    """Return the only report.

    Raises:
        UsageError: there are several, and a `document` is about one.
    """
    if len(reports) > 1:
        raise UsageError(
            document,
            why=", ".join(stored.path.parent.name for stored in reports),
            hint="name one target with --target",
        )
    return reports[0]


def _missing_report(path: Path, loaded: LoadedSpec, reader: Reader) -> Refused:
    hint = f"make one with `provision apply {shlex.quote(str(loaded.path))}`"
    simulated = Path(sandbox_folder(loaded.path), "state", path.relative_to(loaded.folder))
    if reader.exists(simulated):
        hint += f"; the one of the sandbox: provision report {shlex.quote(str(simulated))}"
    target = path.parent.name.removeprefix(f"{loaded.stem}.")
    return Refused(f"there is no report of target {target}", why=f"looked for {path}", hint=hint)
