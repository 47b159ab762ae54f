"""Imports the report of an exported probe. It never becomes a target's own verdict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from provision.commands.shared.load import LoadedSpec, load_spec
from provision.commands.shared.locked_context import build_probe_expectations, get_locked_context
from provision.commands.shared.report_import import (
    accepts_reports,
    check_probe_version,
    check_report_time,
    describe_differences,
    refuse_contradictions,
)
from provision.effects.local import MakeFolder, WriteFile
from provision.effects.system import ProgressCallback, System
from provision.errors import LockError, Refused
from provision.sanitize import escape_line
from provision.state_store import LocalStore
from provision.targets import TargetContext
from provision.verification import Report
from provision.verification.consistency import find_contradictions
from provision.verification.untrusted_report import read_untrusted_report, serialize_report
from provision.views.report import html

_AGAIN = (
    "export the probe again with `provision probe export`, run it on the same machine, and add its "
    "new report unchanged"
)


@dataclass(frozen=True, slots=True)
class ImportedProbeReport:
    """A report of an exported probe, with its files."""

    context: TargetContext
    report: Report
    json_path: Path
    html_path: Path


def import_probe_report(
    content: bytes,
    name: str,
    spec: Path | None,
    target: str | None,
    system: System,
    progress: ProgressCallback,
    *,
    default: Path | None = None,
    lock_wait_s: float = 0,
) -> ImportedProbeReport | None:
    """Store a report that answers a probe exported for a target of `spec`; None for any other.

    Without a spec it is matched against `default`, unless it is of a notebook, which finds its own.

    Raises:
        Refused: it is damaged, forged or of another time; nothing is written.
    """
    report = read_untrusted_report(content, name)
    if spec is None and not accepts_reports(report.subject.kind):
        spec = default
    if spec is None:
        return None
    loaded = load_spec(spec, system)
    context = _find_context(report, loaded, target, system)
    if context is None:
        _refuse_stray(report, name, loaded, target)
        return None
    refuse_contradictions(name, _list_contradictions(report, context), _AGAIN)
    check_probe_version(report, name, context)
    check_report_time(report, name, system)
    path = probe_report_path(loaded, context.target)
    html_path = path.with_suffix(".html")
    title = f"{context.stem} on {context.target}, from an exported probe"
    with LocalStore(loaded.folder, system).exclusive(lock_wait_s, progress):
        system.perform(MakeFolder(path.parent, 0o700), progress)
        system.perform(WriteFile(path, serialize_report(report), 0o600), progress)
        system.perform(WriteFile(html_path, html.render_report(report, title), 0o600), progress)
    return ImportedProbeReport(context, report, path, html_path)


def probe_report_path(loaded: LoadedSpec, target: str) -> Path:
    """Return the path of an exported probe's report, apart from those of provision's runs."""
    return loaded.folder / "carried" / f"{loaded.stem}.{target}" / "report.json"


def _find_context(
    report: Report, loaded: LoadedSpec, target: str | None, system: System
) -> TargetContext | None:
    """Return the context whose exported probe a report answers, by its nonce."""
    for name in loaded.spec.targets:
        if target not in (None, name):
            continue
        try:
            context = get_locked_context(loaded, name, system)
        except (LockError, Refused):
            continue
        if build_probe_expectations(context)["nonce"] == report.subject.nonce:
            return context
    return None


def _refuse_stray(report: Report, name: str, loaded: LoadedSpec, target: str | None) -> None:
    """Refuse a report that answers an earlier export, or is of provision's own run elsewhere."""
    subject = report.subject
    name_of_target = loaded.target_name(target or subject.target)
    declared = loaded.spec.targets.get(name_of_target)
    if (
        declared is None
        or accepts_reports(declared.kind)
        or subject.kind != declared.kind
        or report.document["spec"]["name"] != loaded.spec.name
    ):
        return
    raise Refused(
        f"{name} does not match the current spec and lock of {loaded.stem}/{name_of_target}",
        why=f"its nonce is {escape_line(subject.nonce[:40])}, which differs from the nonce of a "
        "probe exported from the current spec and lock",
        hint=f"{_AGAIN}; to compare this report anyway, run `provision diff OTHER.json {name}`",
    )


def _list_contradictions(report: Report, context: TargetContext) -> list[str]:
    """Return the fields that are not those of the context, and what does not follow from itself."""
    expectations, document = build_probe_expectations(context), report.document
    spec, lock, target = (expectations[key] for key in ("spec", "lock", "target"))
    differences = describe_differences(
        ("spec name", document["spec"]["name"], spec["name"]),
        ("spec digest", document["spec"]["digest"], spec["digest"]),
        ("lock digest", document["lock"]["digest"], lock["digest"]),
        ("lock environment_digest", report.environment_digest, lock["environment_digest"]),
        ("target", report.subject.target, target["name"]),
        ("kind", report.subject.kind, target["kind"]),
        ("machine", "simulated" if report.subject.simulated else "real", "real"),
    )
    return [*differences.values(), *find_contradictions(document, expectations)]
