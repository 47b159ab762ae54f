"""A report that came back, filed: its page beside it, and its verdict in the state."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from provision.commands.shared.stored_verdict import expectations_digest
from provision.effects.local import WriteFile
from provision.effects.system import ProgressCallback, System
from provision.state import State
from provision.state_store import LocalStore
from provision.targets import TargetContext
from provision.verification import Report, probe_digest
from provision.views.report import html


class StoredReport(NamedTuple):
    """The page of a report, and the state that records it."""

    html_path: Path
    state: State


def write_report_page(
    report: Report, json_path: Path, place: TargetContext, world: System, tell: ProgressCallback
) -> Path:
    """Write the page of a report beside it."""
    html_path = json_path.with_suffix(".html")
    world.perform(
        WriteFile(
            html_path,
            html.render_report(dict(report.document), f"{place.stem} on {place.target}"),
            0o600,
        ),
        tell,
    )
    return html_path


def store_report(
    report: Report,
    json_path: Path,
    place: TargetContext,
    state: State,
    store: LocalStore,
    world: System,
    tell: ProgressCallback,
    *,
    nonce: str = "",
    sha256: str = "",
) -> StoredReport:
    """Write a report's page and record its verdict; `nonce` is that of a run on a device elsewhere,
    `sha256` that of a file which people may replace.
    """
    html_path = write_report_page(report, json_path, place, world, tell)
    record = _record(report, json_path, html_path, place, world.now())
    run = {"nonce": nonce} if nonce else {}
    file = (
        {"sha256": sha256, "created_utc": str(report.document["subject"].get("created_utc", ""))}
        if sha256
        else {}
    )
    after = state.with_record(place.address, "verification", {**record, **run, **file})
    store.save(after, expecting=state.serial)
    return StoredReport(html_path, after)


def _record(
    report: Report, json_path: Path, html_path: Path, place: TargetContext, now: str
) -> dict[str, Any]:
    probe = probe_digest()
    return {
        "title": f"verification of {place.target}: {report.verdict}",
        "verdict": report.verdict,
        "sentence": report.sentence,
        "identity": report.identity,
        "expectations": expectations_digest(place, probe),
        "probe": probe,
        "report": json_path.relative_to(place.folder).as_posix(),
        "html": html_path.relative_to(place.folder).as_posix(),
        "at": now,
        "paths": [json_path.parent.relative_to(place.folder).as_posix()],
    }
