"""Imports the report of an exported probe. It never becomes a target's own verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.commands.shared.load import LoadedSpec, load_spec
from provision.commands.shared.locked_context import build_probe_expectations, get_locked_context
from provision.commands.shared.report_import import (
    accepts_reports,
    check_probe_version,
    check_report_time,
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
    "export the probe again with `provision probe export`, run it there, and add the report "
    "that it writes, as it is"
)


@dataclass(frozen=True, slots=True)
class ImportedProbeReport:
    """A report that was carried home, with its files."""

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
    meant = (
        spec if spec is not None or accepts_reports(report.document["subject"]["kind"]) else default
    )
    if meant is None:
        return None
    loaded = load_spec(meant, system)
    context = _find_context(report, loaded, target, system)
    if context is None:
        _refuse_stray(report, name, loaded, target)
        return None
    wrong = tuple(_list_contradictions(report, context))
    if wrong:
        raise Refused(f"{name} does not follow from itself", why="; ".join(wrong[:5]), hint=_AGAIN)
    check_probe_version(report, name, context)
    check_report_time(report, name, {}, system)
    store, path = LocalStore(loaded.folder, system), probe_report_path(loaded, context.target)
    with store.exclusive(lock_wait_s, progress):
        system.perform(MakeFolder(path.parent, 0o700), progress)
        system.perform(WriteFile(path, serialize_report(report), 0o600), progress)
        page = html.render_report(report, f"{context.stem} on {context.target}, carried by hand")
        system.perform(WriteFile(path.with_suffix(".html"), page, 0o600), progress)
    return ImportedProbeReport(context, report, path, path.with_suffix(".html"))


def probe_report_path(loaded: LoadedSpec, target: str) -> Path:
    """Return the path of an exported probe's report, apart from those of our own runs."""
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
        if build_probe_expectations(context)["nonce"] == report.document["subject"]["nonce"]:
            return context
    return None


def _refuse_stray(report: Report, name: str, loaded: LoadedSpec, target: str | None) -> None:
    """Refuse a report that answers an earlier export, or is of provision's own run elsewhere."""
    subject = report.document["subject"]
    meant = loaded.spec.targets.get(target or subject["target"])
    if (
        meant is None
        or accepts_reports(meant.kind)
        or subject["kind"] != meant.kind
        or report.document["spec"]["name"] != loaded.spec.name
    ):
        return
    why = (
        f"its nonce is {escape_line(subject['nonce'][:40])}, and no probe that this version "
        "exports of spec and lock as they are carries that"
    )
    hint = f"{_AGAIN}; to compare this one as it is: provision diff OTHER.json {name}"
    raise Refused(
        f"{name} is no answer to what {loaded.stem}/{target or subject['target']} asks now",
        why=why,
        hint=hint,
    )


def _list_contradictions(report: Report, context: TargetContext) -> Iterator[str]:
    asked, document = build_probe_expectations(context), report.document
    yield from (
        f"its {what} is {escape_line(str(there)[:80])}, ours is {ours}"
        for what, there, ours in _compare_subject(document, asked)
        if there != ours
    )
    yield from find_contradictions(document, asked)


def _compare_subject(
    document: Mapping[str, Any], asked: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    for block, key in (
        ("spec", "name"),
        ("spec", "digest"),
        ("lock", "digest"),
        ("lock", "environment_digest"),
    ):
        yield f"{block} {key}", document[block].get(key), asked[block][key]
    for key, ours in (("target", asked["target"]["name"]), ("kind", asked["target"]["kind"])):
        yield key, document["subject"].get(key), ours
    if document["subject"]["simulated"]:
        yield "machine", "simulated", "real"
