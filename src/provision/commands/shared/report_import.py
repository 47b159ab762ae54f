"""Imports reports that people bring: finds their target, checks them, and stores them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from provision.commands.shared.executor import Executor, open_executor
from provision.commands.shared.facts_comparison import compare_with_facts
from provision.commands.shared.load import LoadedSpec, load_spec, state_folder
from provision.commands.shared.lock_file import require_current_lock
from provision.commands.shared.report_store import store_report
from provision.commands.shared.target_plans import get_driver_and_context
from provision.effects.local import MakeFolder, WriteFile
from provision.effects.system import ProgressCallback, System
from provision.errors import ExternalError, Refused
from provision.kinds import registry_in_use
from provision.sanitize import escape_line
from provision.state import State
from provision.state_store import LocalStore
from provision.targets import TargetContext, find_driver, load_driver, load_drivers
from provision.targets.base import ProbeEvidence
from provision.targets.capabilities import AcceptsReports, FactsComparison, ReportRequest
from provision.targets.stored_verdict import VerificationRecord
from provision.verification import Report
from provision.verification.consistency import find_contradictions
from provision.verification.device_files import probe_digest
from provision.verification.report import MAX_REPORT_BYTES
from provision.verification.untrusted_report import read_untrusted_report, serialize_report

_TIME = "%Y-%m-%dT%H:%M:%SZ"
_CLOCK_TOLERANCE = timedelta(days=1)
"""Tolerance for a runtime's clock that is ahead. Our choice."""
_EARLIEST_TIME = "2026-01-01T00:00:00Z"
"""The year of provision's first version; a clock that was never set shows 1970."""
_MAX_SHOWN = 100


@dataclass(frozen=True, slots=True)
class ImportedReport:
    """An imported report with its target; `fresh` unless the same was imported before."""

    loaded: LoadedSpec
    context: TargetContext
    report: Report
    json_path: Path
    html_path: Path
    fresh: bool
    facts_comparison: FactsComparison


def import_report(
    content: bytes,
    name: str,
    spec: Path | None,
    target: str | None,
    system: System,
    progress: ProgressCallback,
    *,
    lock_wait_s: float = 0,
) -> ImportedReport:
    """Store a report under its target; `name` is how messages call it.

    Without a spec it is that of the notebook in this folder which waits for the report.

    Raises:
        Refused: the report is damaged, forged, foreign or old; nothing is written.
        LockError: there is no lock that matches.
    """
    report = read_untrusted_report(content, name)
    loaded = load_spec(spec or _find_spec(report, name, system), system)
    state = LocalStore(loaded.folder, system).load_ledger().state
    chosen = _find_target(report, loaded, target, state, name)
    with open_executor(loaded, system, progress, lock_wait_s=lock_wait_s) as executor:
        return import_report_for_target(report, name, loaded, chosen, executor)


def _find_spec(report: Report, name: str, reader: System) -> Path:
    """Return the spec in the working folder whose notebook can have requested a report."""
    state = LocalStore(state_folder(Path("any.yaml")), reader).load_ledger().state
    subject, requests = report.subject, _list_requests(state)
    stems = {address.rpartition("/")[0] for address in _likely_addresses(report, requests)}
    what, known = (
        f"no rendered notebook matches {name}",
        "no spec in this folder has a rendered notebook",
    )
    if len(stems) == 1:
        (stem,) = stems
        for suffix in (".yaml", ".yml"):
            if reader.exists(path := Path(f"{stem}{suffix}")):
                return path
        what, known = f"the spec {stem}.yaml is missing", "its notebook is in this folder"
    elif stems:
        known = f"this folder has notebooks for {', '.join(sorted(stems))}"
    identity = (
        f"the report is for target `{_shorten(subject.target)}` of "
        f"{_shorten(report.document['spec']['name'])}, with nonce {_shorten(subject.nonce)}"
    )
    raise Refused(what, why=f"{identity}; {known}", hint="select the spec with --spec")


def _likely_addresses(report: Report, requests: Mapping[str, ReportRequest]) -> list[str]:
    """Return the addresses whose request a report answers; else those of its target; else all."""
    by_nonce = [
        address for address, request in requests.items() if request.nonce == report.subject.nonce
    ]
    target = report.subject.target
    by_target = [address for address in requests if address.rpartition("/")[2] == target]
    return by_nonce or by_target or list(requests)


def _list_requests(state: State) -> dict[str, ReportRequest]:
    """Return the recorded requests for reports by address."""
    addresses = dict.fromkeys(key.rpartition("#")[0] for key in state.resources)
    requests = {}
    for driver in load_drivers(registry_in_use.get()):
        if isinstance(driver, AcceptsReports):
            for address in addresses:
                if (request := driver.report_request(address, state)) is not None:
                    requests[address] = request
    return requests


def import_report_for_target(
    report: Report, name: str, loaded: LoadedSpec, target: str, executor: Executor
) -> ImportedReport:
    """Check a report and store it under a target; the executor has the lock of the store.

    Raises what `import_report` raises.
    """
    driver, context, request = _read_request(loaded, target, executor)
    _refuse_other_target(report, name, context, request, driver)
    _refuse_outdated(loaded, context, request, driver, name)
    check_probe_version(report, name, context)
    contradictions = find_contradictions(report.document, driver.report_expectations(context))
    hint = "run the notebook again, and add its new report unchanged"
    refuse_contradictions(name, contradictions, hint)
    content = serialize_report(report)
    sha256 = hashlib.sha256(content).hexdigest()
    stored = VerificationRecord.find(executor.state, context.address)
    comparison = compare_with_facts(loaded, context, report.document)
    system, path = executor.system, context.reports_folder / "report.json"
    if stored is not None and stored.nonce != request.nonce:
        stored = None  # it answered an earlier request
    if stored is not None and stored.sha256 == sha256 and _has_content(path, content, system):
        page = context.folder / stored.html
        return ImportedReport(loaded, context, report, path, page, False, comparison)
    check_report_time(report, name, system, stored)
    system.perform(MakeFolder(path.parent, 0o700), executor.progress)
    system.perform(WriteFile(path, content, 0o600), executor.progress)
    evidence = ProbeEvidence(report, path, nonce=request.nonce, sha256=sha256)
    page = store_report(evidence, context, executor)
    return ImportedReport(loaded, context, report, path, page, True, comparison)


def _find_target(
    report: Report, loaded: LoadedSpec, target: str | None, state: State, name: str
) -> str:
    """Return the named target, else the one whose request it answers, else the only candidate."""
    targets = loaded.spec.targets
    accepting = [key for key, declared in targets.items() if accepts_reports(declared.kind)]
    if target is not None:
        if target not in targets:
            raise Refused(
                f"{loaded.path} has no target `{target}`",
                hint=f"its targets: {', '.join(targets)}",
            )
        if target not in accepting:
            raise Refused(
                f"{loaded.stem}/{target} does not accept reports",
                why=f"provision itself verifies targets of kind {targets[target].kind}",
                hint="run `provision verify`",
            )
        return target
    if not accepting:
        raise Refused(
            f"{loaded.path} has no target that accepts reports",
            why="none of its targets is of kind colab",
            hint="select the spec with --spec",
        )
    subject, requests = report.subject, _list_requests(state)
    candidates = [
        key
        for key in accepting
        if (request := requests.get(f"{loaded.stem}/{key}")) and request.nonce == subject.nonce
    ]
    if not candidates:
        candidates = [key for key in accepting if key == subject.target] or accepting
    if len(candidates) == 1:
        return candidates[0]
    raise Refused(
        f"{name} does not match any notebook for {loaded.path}",
        why=f"no notebook for target `{_shorten(subject.target)}` has the report's nonce "
        f"{_shorten(subject.nonce)}",
        hint=f"select one of these targets with `--target`: {', '.join(accepting)}",
    )


def accepts_reports(kind: str) -> bool:
    """Return whether people import the reports of a kind of target."""
    declaration = registry_in_use.get().find(kind)
    return declaration is not None and isinstance(load_driver(declaration), AcceptsReports)


def _read_request(
    loaded: LoadedSpec, target: str, executor: Executor
) -> tuple[AcceptsReports, TargetContext, ReportRequest]:
    """Return a target's driver and context, and the request that its notebook makes.

    Raises:
        LockError: there is no lock, or the spec has changed since.
        Refused: no notebook was made.
    """
    hint = f"render it with `{loaded.command('apply', target)}`, run it, and add its new report"
    address = f"{loaded.stem}/{target}"
    driver = find_driver(loaded.spec, target)
    if (
        driver is None
        or not isinstance(driver, AcceptsReports)
        or (request := driver.report_request(address, executor.state)) is None
    ):
        raise Refused(
            f"{address} has no rendered notebook",
            why=f"none is recorded in {loaded.folder / 'state.json'}",
            hint=hint,
        )
    lock = require_current_lock(loaded, executor.system, product="notebook", hint=hint)
    _, context = get_driver_and_context(loaded, lock, target, executor.system)
    return driver, context, request


def _refuse_other_target(
    report: Report,
    name: str,
    context: TargetContext,
    request: ReportRequest,
    driver: AcceptsReports,
) -> None:
    document, subject = report.document, report.subject
    spec_digest = str(driver.report_expectations(context)["spec"]["digest"])
    differing = describe_differences(
        ("spec", document["spec"]["name"], context.spec.name),
        ("target", subject.target, context.target),
        ("kind", subject.kind, context.spec.targets[context.target].kind),
        ("nonce", subject.nonce, request.nonce),
        ("lock digest", document["lock"]["digest"], request.lock_digest),
        ("environment digest", report.environment_digest, request.environment_digest),
        ("spec digest", document["spec"]["digest"], spec_digest),
    )
    if not differing:
        return
    why = "; ".join(differing.values())
    if "nonce" in differing and differing.keys().isdisjoint(("spec", "target", "kind")):
        raise Refused(
            f"{name} is from a different version of the notebook for {context.address}",
            why=why,
            hint=f"open the current notebook for {context.address}, run it, and add its new report",
        )
    hint = (
        "select the report's spec and target with --spec and --target, or run the notebook "
        "for this target"
    )
    raise Refused(f"{name} is not a report for {context.address}", why=why, hint=hint)


def describe_differences(*fields: tuple[str, str, str]) -> dict[str, str]:
    """Return descriptions, by name, of the fields whose reported value is not the expected one."""
    return {
        field: f"its {field} is {_shorten(reported)}, expected {_shorten(expected)}"
        for field, reported, expected in fields
        if reported != expected
    }


def _refuse_outdated(
    loaded: LoadedSpec,
    context: TargetContext,
    request: ReportRequest,
    driver: AcceptsReports,
    name: str,
) -> None:
    """Refuse a report of a notebook that is not the one that spec and lock make now."""
    if not request.is_manual:
        return
    nonce = driver.current_nonce(context, loaded.facts)
    if nonce == request.nonce:
        return
    raise Refused(
        f"{name} is for an earlier version of {context.address}",
        why="the spec or the lock has changed since the notebook was rendered: its nonce is "
        f"{request.nonce}, but the current nonce is {nonce}",
        hint=f"run `{loaded.command('apply', context.target)}`, run the notebook again, and add "
        "its new report",
    )


def refuse_contradictions(name: str, contradictions: Sequence[str], hint: str) -> None:
    """Raise Refused for a report with parts that contradict each other."""
    if contradictions:
        more = f"; and {len(contradictions) - 5} more" if len(contradictions) > 5 else ""
        why = "; ".join(contradictions[:5]) + more
        raise Refused(f"{name} contradicts itself", why=why, hint=hint)


def check_probe_version(report: Report, name: str, context: TargetContext) -> None:
    """Raise Refused for a report that another probe wrote than this version's."""
    tool, expected = report.document["tool"], probe_digest()
    if tool["name"] == "provision" and tool["probe_sha256"] == expected:
        return
    why = (
        f"it was written by probe {_shorten(tool['probe_sha256'])} from "
        f"{_shorten(tool['name'])} {_shorten(str(tool.get('version')))}, but this version's "
        f"probe is {expected}"
    )
    hint = (
        f"render the notebook for {context.address} again with this version of provision and "
        "run it, or add the report with the version that rendered the notebook"
    )
    raise Refused(f"{name} was written by a different version of the probe", why=why, hint=hint)


def check_report_time(
    report: Report, name: str, system: System, stored: VerificationRecord | None = None
) -> None:
    """Raise Refused for a report from the future, or one older than the stored one."""
    created = report.document["subject"]["created_utc"]
    try:
        time = datetime.strptime(created, _TIME).replace(tzinfo=UTC)
    except ValueError:
        time = None
    if time is None or time.strftime(_TIME) != created:
        raise Refused(
            f"the report {name} is damaged",
            why=f"its creation time '{_shorten(created)}' is not a valid timestamp",
            hint="copy report.json again from the machine that wrote it",
        )
    now = system.now()
    if time > datetime.strptime(now, _TIME).replace(tzinfo=UTC) + _CLOCK_TOLERANCE:
        raise Refused(
            f"{name} has a timestamp in the future",
            why=f"it was created at {created}, but the time on this machine is {now}",
            hint="correct the clock that is wrong, on this machine or on the other",
        )
    if created < _EARLIEST_TIME:
        raise Refused(
            f"{name} has a timestamp too far in the past",
            why=f"it was created at {created}, before provision existed",
            hint="correct the clock on the machine that wrote the report, and run the "
            "verification again",
        )
    if stored is not None and created < stored.created_utc:
        raise Refused(
            f"{name} is older than the stored report",
            why=f"it was created at {created}, but the stored report was created at "
            f"{stored.created_utc}",
            hint="add the most recent report",
        )


def _has_content(path: Path, content: bytes, system: System) -> bool:
    try:
        return system.read(path, MAX_REPORT_BYTES) == content
    except ExternalError:
        return False


def _shorten(text: str) -> str:
    line = escape_line(text)
    return line if len(line) <= _MAX_SHOWN else line[:_MAX_SHOWN] + "…"
