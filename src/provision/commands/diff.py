"""Compare two environments: reports as files or of two targets, captures, or a mix of them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from provision.commands.shared.load import LoadedSpec, load_spec
from provision.commands.shared.lock_file import read_lock_file
from provision.commands.shared.stored_reports import missing_report
from provision.effects.system import ProgressCallback, Reader
from provision.errors import UsageError
from provision.spelling import did_you_mean
from provision.verification import Report
from provision.verification.diff.compare import compare_reports
from provision.verification.diff.derived import NO_LOCKED_PACKAGES, read_locked_packages
from provision.verification.diff.model import ReportComparison
from provision.verification.diff.snapshot import parse_document, read_document_bytes, read_snapshot
from provision.verification.diff.snapshot_model import SnapshotComparison
from provision.verification.report import SCHEMA, find_tampering, read_report


class _Side(NamedTuple):
    """One side: its name as it was given, its file and content, and its report if it is one."""

    given: str
    path: Path
    content: bytes
    report: Report | None


def diff(
    first: str,
    second: str,
    spec: Path | None,
    reader: Reader,
    progress: ProgressCallback,
    error: str | None = None,
) -> ReportComparison | SnapshotComparison:
    """Return the comparison of two environments.

    Two reports are compared with their checks; anything else, and everything next to an error, by
    what was observed. A report that was changed after the probe wrote it is compared with a
    warning, and is never the same as another.

    Args:
        first: A file, or a target of `spec`.
        second: The same for the other side.
        spec: The spec whose lock contains the requirements of packages.
        reader: Reads the files.
        progress: Called with warnings.
        error: The text of an error; what can cause it comes first.

    Raises:
        UsageError: a side is neither a file nor a target, or both are the same file.
        Refused: a target has no report.
        ExternalError: a document cannot be read.
    """
    loaded = load_spec(spec, reader) if spec is not None else None
    a, b = _read_side(first, loaded, reader), _read_side(second, loaded, reader)
    names = _name_side(a), _name_side(b)
    if names[0] == names[1]:
        names = first, second
    tampered: dict[str, None] = {}
    for name, side in zip(names, (a, b), strict=True):
        if side.report is not None and (reason := find_tampering(side.report)):
            tampered[name] = None
            progress(f"warning: {name} cannot be trusted: {reason}")
    if error is not None or a.report is None or b.report is None:
        return _diff_snapshots(a, b, names, error)
    lock = read_lock_file(loaded, reader) if loaded is not None else None
    packages = read_locked_packages(lock) if lock is not None else NO_LOCKED_PACKAGES
    comparison = compare_reports(a.report, b.report, names, packages)
    return comparison._replace(tampered=tuple(tampered))


def diff_documents(
    first: str, second: str, reader: Reader
) -> tuple[SnapshotComparison, tuple[Report | None, Report | None]]:
    """Return the comparison of two files by what was observed, and their reports, if they are.

    Raises:
        UsageError: both are the same file.
        ExternalError: a document cannot be read.
    """
    a, b = _read_side(first, None, reader), _read_side(second, None, reader)
    names = _name_side(a), _name_side(b)
    if names[0] == names[1]:
        names = first, second
    return _diff_snapshots(a, b, names, None), (a.report, b.report)


def is_file(side: str, reader: Reader) -> bool:
    """Return whether a side is a file and not the name of a target."""
    return side.endswith(".json") or ("." in side and reader.exists(Path(side)))


def _diff_snapshots(
    a: _Side, b: _Side, names: tuple[str, str], error: str | None
) -> SnapshotComparison:
    from provision.commands.shared.snapshot_diff import diff_snapshots

    if a.path.resolve() == b.path.resolve():
        raise UsageError(
            f"{a.given} and {b.given} are the same file",
            why="comparing a file with itself shows no differences",
            hint="use a capture from another machine, or from this machine at a different time",
        )
    snapshots = [
        read_snapshot(side.content, str(side.path), name)
        for side, name in zip((a, b), names, strict=True)
    ]
    return diff_snapshots(snapshots[0], snapshots[1], error)


def _name_side(side: _Side) -> str:
    name = side.path.stem
    if not side.given.endswith(side.path.suffix):
        return side.given
    if side.report is not None and side.path.name == "report.json":
        return side.report.subject.target or name
    return name


def _read_side(side: str, loaded: LoadedSpec | None, reader: Reader) -> _Side:
    path = Path(side) if is_file(side, reader) else _target_report_path(side, loaded, reader)
    content = read_document_bytes(path, reader)
    is_report = parse_document(content, str(path))["schema"] == SCHEMA
    return _Side(side, path, content, read_report(content, str(path)) if is_report else None)


def _target_report_path(side: str, loaded: LoadedSpec | None, reader: Reader) -> Path:
    if loaded is None:
        names = [name for name in reader.list_folder(Path()) if name.endswith(".json")]
        meant = did_you_mean(side, names) or did_you_mean(f"{side}.json", names)
        targets = f"to compare targets, add their spec: provision diff {side} ... --spec SPEC"
        raise UsageError(
            f"{side} is not a report or a capture",
            why="the file name of a report or a capture must end in .json",
            hint=meant or targets,
        )
    side = loaded.target_name(side)
    if side not in loaded.spec.targets:
        raise UsageError(
            f"the spec has no target `{side}`",
            hint=f"use one of its targets ({', '.join(loaded.spec.targets)}) or a report.json",
        )
    path = loaded.report_folder(side) / "report.json"
    if not reader.exists(path):
        raise missing_report(side, loaded, reader)
    return path
