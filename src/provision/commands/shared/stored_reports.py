"""Reports that a command line names: a report.json, or the stored reports of a spec's targets."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple

from provision.commands.shared.load import LoadedSpec, load_spec
from provision.commands.shared.target_selection import select_targets
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
                f"--target selects targets in a spec, but {path} is a report",
                hint="omit --target",
            )
        return (StoredReport(read_report_file(path, reader), path),)
    loaded = load_spec(path, reader)
    paths = {
        name: loaded.report_folder(name) / "report.json"
        for name in select_targets(loaded, targets, everything=True)
    }
    stored = [path for path in paths.values() if reader.exists(path)]
    if len(stored) < (len(paths) if targets else 1):
        name = next(name for name, path in paths.items() if path not in stored)
        raise missing_report(name, loaded, reader)
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
            hint="select one target with --target",
        )
    return reports[0]


def missing_report(target: str, loaded: LoadedSpec, reader: Reader) -> Refused:
    """Return the error for a target without a stored report."""
    path = loaded.report_folder(target) / "report.json"
    hint = f"create one with `{loaded.command('apply')}`"
    simulated = Path(loaded.sandbox_folder, "state", path.relative_to(loaded.folder))
    if reader.exists(simulated):
        command = f"provision report {shlex.quote(str(simulated))}"
        hint += f"; to view the sandbox's report, run `{command}`"
    return Refused(f"target `{target}` has no report", why=f"{path} does not exist", hint=hint)
