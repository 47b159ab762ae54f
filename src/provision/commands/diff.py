"""Compare two verifications: reports as files, or the stored ones of two targets."""

from __future__ import annotations

from pathlib import Path

from provision.commands.shared.load import LoadedSpec, load_spec
from provision.commands.shared.lock_file import read_lock_file
from provision.effects.system import ProgressCallback, Reader
from provision.errors import Refused, UsageError
from provision.verification import Report
from provision.verification.diff.compare import compare_reports
from provision.verification.diff.derived import (
    NO_LOCKED_PACKAGES,
    LockedPackages,
    read_locked_packages,
)
from provision.verification.diff.model import ReportComparison
from provision.verification.report import find_tampering, read_report_file


def diff(
    one: str, other: str, spec: Path | None, reader: Reader, progress: ProgressCallback
) -> ReportComparison:
    """Return the comparison of two reports.

    A report that was changed after the probe wrote it is compared with a warning, and is never
    the same as another.

    Args:
        one: A report file that ends in .json, or a target of `spec`.
        other: The same for the other side.
        spec: The spec whose lock holds the requirements of packages.
        reader: Reads the files.
        progress: Called with warnings.

    Raises:
        UsageError: a side is neither a report nor a target.
        Refused: a target has no report.
        ExternalError: a report cannot be read.
    """
    loaded = load_spec(spec, reader) if spec is not None else None
    a, b = _report(one, loaded, reader), _report(other, loaded, reader)
    names = _name(one, a), _name(other, b)
    if names[0] == names[1]:
        names = one, other
    tampered = []
    for name, report in zip(names, (a, b), strict=True):
        if reason := find_tampering(report):
            tampered.append(name)
            progress(f"warning: {name} proves nothing: {reason}")
    comparison = compare_reports(a, b, names, _locked_packages(loaded, reader))
    return comparison._replace(tampered=tuple(dict.fromkeys(tampered)))


def _name(side: str, report: Report) -> str:
    if not side.endswith(".json"):
        return side
    path = Path(side)
    return path.stem if path.name != "report.json" else report.subject.target or path.stem


def _report(side: str, loaded: LoadedSpec | None, reader: Reader) -> Report:
    if side.endswith(".json"):
        return read_report_file(Path(side), reader)
    if loaded is None:
        raise UsageError(
            f"{side} is no report",
            why="a report is a file that ends in .json",
            hint=f"name a target's spec: provision diff {side} ... --spec SPEC",
        )
    if side not in loaded.spec.targets:
        raise UsageError(
            f"the spec has no target {side}",
            hint=f"its targets: {', '.join(loaded.spec.targets)}; or name a report.json",
        )
    path = loaded.folder / "reports" / f"{loaded.stem}.{side}" / "report.json"
    if not reader.exists(path):
        raise Refused(
            f"there is no report of target {side}",
            why=f"looked for {path}",
            hint=f"make one with `provision apply {loaded.path} --target {side}`",
        )
    return read_report_file(path, reader)


def _locked_packages(loaded: LoadedSpec | None, reader: Reader) -> LockedPackages:
    lock = read_lock_file(loaded.lock_path, reader) if loaded is not None else None
    return read_locked_packages(lock) if lock is not None else NO_LOCKED_PACKAGES
