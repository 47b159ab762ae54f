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
    one: str, other: str, spec: Path | None, reader: Reader, tell: ProgressCallback
) -> ReportComparison:
    """Return the comparison; each side is a file that ends in .json, or a target of `spec`, whose
    lock tells what requires what.

    A report that was changed after the probe wrote it is compared, and told of: it is never the
    same as another.

    Raises UsageError, Refused where there is no report, WorldError, and what reading a spec and
    its lock raises.
    """
    loaded = load_spec(spec, reader) if spec is not None else None
    a, b = _report(one, loaded, reader), _report(other, loaded, reader)
    names = _name(one, a), _name(other, b)
    names = names if names[0] != names[1] else (one, other)
    wrong = {
        name: why
        for name, report in zip(names, (a, b), strict=True)
        if (why := find_tampering(report))
    }
    for name, why in wrong.items():
        tell(f"warning: {name} proves nothing: {why}")
    return compare_reports(a, b, names, _lock_knowledge(loaded, reader))._replace(
        tampered=tuple(wrong)
    )


def _name(word: str, report: Report) -> str:
    target = report.document["subject"].get("target")
    return (
        word
        if not word.endswith(".json")
        else str(target)
        if target and Path(word).name == "report.json"
        else Path(word).stem
    )


def _report(word: str, loaded: LoadedSpec | None, reader: Reader) -> Report:
    if word.endswith(".json"):
        return read_report_file(Path(word), reader)
    if loaded is None:
        raise UsageError(
            f"{word} is no report",
            why="a report is a file that ends in .json",
            hint=f"name a target's spec: provision diff {word} ... --spec SPEC",
        )
    if word not in loaded.spec.targets:
        raise UsageError(
            f"the spec has no target {word}",
            hint=f"its targets: {', '.join(loaded.spec.targets)}; or name a report.json",
        )
    path = loaded.folder / "reports" / f"{loaded.stem}.{word}" / "report.json"
    if not reader.exists(path):
        raise Refused(
            f"there is no report of target {word}",
            why=f"looked for {path}",
            hint=f"make one with `provision apply {loaded.path} --target {word}`",
        )
    return read_report_file(path, reader)


def _lock_knowledge(loaded: LoadedSpec | None, reader: Reader) -> LockedPackages:
    lock = read_lock_file(loaded.lock_path, reader) if loaded is not None else None
    return read_locked_packages(lock) if lock is not None else NO_LOCKED_PACKAGES
