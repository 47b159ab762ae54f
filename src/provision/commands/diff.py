"""Compare two verifications: reports as files, or the stored ones of two targets."""

from __future__ import annotations

from pathlib import Path

from provision.commands.shared.load import LoadedSpec, load_spec
from provision.commands.shared.lock_file import read_lock_file
from provision.commands.shared.stored_reports import missing_report
from provision.effects.system import ProgressCallback, Reader
from provision.errors import UsageError
from provision.verification import Report
from provision.verification.diff.compare import compare_reports
from provision.verification.diff.derived import NO_LOCKED_PACKAGES, read_locked_packages
from provision.verification.diff.model import ReportComparison
from provision.verification.report import find_tampering, read_report_file


def diff(
    first: str, second: str, spec: Path | None, reader: Reader, progress: ProgressCallback
) -> ReportComparison:
    """Return the comparison of two reports.

    A report that was changed after the probe wrote it is compared with a warning, and is never
    the same as another.

    Args:
        first: A report file that ends in .json, or a target of `spec`.
        second: The same for the other side.
        spec: The spec whose lock contains the requirements of packages.
        reader: Reads the files.
        progress: Called with warnings.

    Raises:
        UsageError: a side is neither a report nor a target.
        Refused: a target has no report.
        ExternalError: a report cannot be read.
    """
    loaded = load_spec(spec, reader) if spec is not None else None
    a, b = _read_side(first, loaded, reader), _read_side(second, loaded, reader)
    names = _name_side(first, a), _name_side(second, b)
    if names[0] == names[1]:
        names = first, second
    tampered: dict[str, None] = {}
    for name, report in zip(names, (a, b), strict=True):
        if reason := find_tampering(report):
            tampered[name] = None
            progress(f"warning: {name} proves nothing: {reason}")
    lock = read_lock_file(loaded.lock_path, reader) if loaded is not None else None
    packages = read_locked_packages(lock) if lock is not None else NO_LOCKED_PACKAGES
    return compare_reports(a, b, names, packages)._replace(tampered=tuple(tampered))


def _name_side(side: str, report: Report) -> str:
    if not side.endswith(".json"):
        return side
    path = Path(side)
    return path.stem if path.name != "report.json" else report.subject.target or path.stem


def _read_side(side: str, loaded: LoadedSpec | None, reader: Reader) -> Report:
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
    path = loaded.report_folder(side) / "report.json"
    if not reader.exists(path):
        raise missing_report(side, loaded, reader)
    return read_report_file(path, reader)
