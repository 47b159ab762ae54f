"""A report that was brought from a notebook: whose it is, whether it may be believed, and where it
is filed.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any

from provision.commands.facts_comparison import FactsComparison, compare_with_facts
from provision.commands.lock import read_lock
from provision.commands.shared.load import LoadedSpec, load_spec, state_folder
from provision.commands.shared.report_store import store_report
from provision.commands.shared.target_plans import get_driver_and_context
from provision.effects import MakeFolder, ProgressCallback, System, WriteFile
from provision.errors import ExternalError, LockError, Refused
from provision.kinds.models import ColabTarget
from provision.lock.inputs import list_changed_inputs
from provision.sanitize import escape_line
from provision.state import State
from provision.state_store import LocalStore
from provision.targets import TargetContext
from provision.targets.colab.agent_config import build_agent_config
from provision.targets.colab.driver import NOTEBOOK_PART
from provision.targets.workbench.programs import read_pinned_uv
from provision.verification import Report, expectations_of, probe_digest
from provision.verification.consistency import find_contradictions
from provision.verification.report import MAX_REPORT_BYTES
from provision.verification.untrusted_report import read_untrusted_report, serialize_report

_TIME = "%Y-%m-%dT%H:%M:%SZ"
_AHEAD = timedelta(days=1)
"""How far the clock of a runtime may be ahead of ours. Our choice."""
_FIRST = "2026-01-01T00:00:00Z"
"""No report is older: the year of provision's first version. A machine whose clock was never set
says 1970.
"""
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class ImportedReport:
    """A report at home: its spec, its target's place, its files, the state, what it says of the
    facts; `fresh` unless it was filed before.
    """

    loaded: LoadedSpec
    context: TargetContext
    report: Report
    json_path: Path
    html_path: Path
    state: State
    fresh: bool
    facts_comparison: FactsComparison

    @property
    def exit_code(self) -> int:
        """The exit code of the verdict; what is simulated proves nothing of a runtime."""
        return self.report.exit_code


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
    """File the report that `content` holds under its target, and return it; `name` is how messages
    call it.

    Without a spec it is that of the notebook in this folder which waits for the report. Raises
    Refused, with nothing written, for a report that is damaged,
    forged, foreign or old; LockError without a lock that holds; StateError, WorldError; Findings
    and SourceError as every command with a spec.
    """
    report = read_untrusted_report(content, name)
    loaded = load_spec(spec or find_spec_for_report(report, Path(), name, system), system)
    store = LocalStore(loaded.folder, system)
    chosen = find_target_of_report(report, loaded, target, store.load_ledger().state, name)
    with store.exclusive(lock_wait_s, progress):
        return import_report_for_target(
            report, name, loaded, chosen, store.load_ledger().state, store, system, progress
        )


def find_spec_for_report(report: Report, folder: Path, name: str, reader: System) -> Path:
    """Return the spec in a folder whose notebook a report is of, by the nonce; where none waits for
    it, the one that it can be of at all.
    """
    state, subject = (
        LocalStore(state_folder(folder / "any.yaml"), reader).load_ledger().state,
        report.document["subject"],
    )
    made = {
        key.rpartition("#")[0]: record
        for key, record in state.resources.items()
        if key.rpartition("#")[2] == NOTEBOOK_PART
    }
    waiting = [
        address for address, record in made.items() if record.get("nonce") == subject["nonce"]
    ]
    likely = (
        waiting
        or [address for address in made if address.rpartition("/")[2] == subject["target"]]
        or list(made)
    )
    stems = {address.rpartition("/")[0] for address in likely}
    said = (
        f"it is of target {_shorten(subject['target'])} of "
        f"{_shorten(report.document['spec']['name'])}, with nonce {_shorten(subject['nonce'])}"
    )
    if len(stems) != 1:
        here = (
            f"notebooks were made here of {', '.join(sorted(stems))}"
            if stems
            else "no notebook was made of a spec in this folder"
        )
        raise Refused(
            f"nothing here waits for {name}",
            why=f"{said}; {here}",
            hint="name the spec with --spec",
        )
    (stem,) = stems
    found = [
        path for ending in (".yaml", ".yml") if reader.exists(path := folder / f"{stem}{ending}")
    ]
    if not found:
        raise Refused(
            f"the spec {stem}.yaml is gone",
            why=f"{said}; its notebook was made here",
            hint="name the spec with --spec",
        )
    return found[0]


def import_report_for_target(
    report: Report,
    name: str,
    loaded: LoadedSpec,
    target: str,
    state: State,
    store: LocalStore,
    system: System,
    progress: ProgressCallback,
) -> ImportedReport:
    """File a report that was read by `read_foreign` under a target, and return it; the lock of the
    store is held. Raises as `receive` does.
    """
    context, record = _read_pending_notebook(loaded, target, state, system)
    _refuse_other_target(report, name, context, record)
    _refuse_outdated(loaded, context, record, name)
    check_probe_version(report, name, context)
    if wrong := find_contradictions(report.document, _expectations(context)):
        why = "; ".join(wrong[:5]) + (f"; and {len(wrong) - 5} more" if len(wrong) > 5 else "")
        raise Refused(
            f"{name} does not follow from itself",
            why=why,
            hint="run the notebook again, and add the report that it offers, as it is",
        )
    content = serialize_report(report)
    sha256, stored = (
        hashlib.sha256(content).hexdigest(),
        state.resource(context.address, "verification") or {},
    )
    reconsidered = compare_with_facts(loaded, context, report.document)
    path = report_path(context)
    if (
        stored.get("sha256") == sha256
        and stored.get("nonce") == record["nonce"]
        and _has_content(path, content, system)
    ):
        return ImportedReport(
            loaded,
            context,
            report,
            path,
            context.folder / str(stored["html"]),
            state,
            False,
            reconsidered,
        )
    check_report_time(
        report, name, stored if stored.get("nonce") == record["nonce"] else {}, system
    )
    system.perform(MakeFolder(path.parent, 0o700), progress)
    system.perform(WriteFile(path, content, 0o600), progress)
    filed = store_report(
        report,
        path,
        context,
        state,
        store,
        system,
        progress,
        nonce=str(record["nonce"]),
        sha256=sha256,
    )
    return ImportedReport(
        loaded, context, report, path, filed.html_path, filed.state, True, reconsidered
    )


def find_target_of_report(
    report: Report, loaded: LoadedSpec, target: str | None, state: State, name: str
) -> str:
    """Return the target that a report is of: the one named, else the one that waits for its nonce,
    else the only one that it can be of.
    """
    known = [
        one for one, context in loaded.spec.targets.items() if isinstance(context, ColabTarget)
    ]
    if target is not None:
        if target not in loaded.spec.targets:
            raise Refused(
                f"{loaded.path} has no target {target}",
                hint=f"its targets: {', '.join(loaded.spec.targets)}",
            )
        if target not in known:
            kind = loaded.spec.targets[target].kind
            raise Refused(
                f"{loaded.stem}/{target} takes no report",
                why=f"its kind is {kind}: provision verifies it itself",
                hint="run `provision verify`",
            )
        return target
    if not known:
        raise Refused(
            f"{loaded.path} has no target that reports come home to",
            why="none of its targets is of kind colab",
            hint="name the spec with --spec",
        )
    nonce, said = report.document["subject"]["nonce"], report.document["subject"]["target"]
    waiting = [
        one
        for one in known
        if (state.resource(f"{loaded.stem}/{one}", NOTEBOOK_PART) or {}).get("nonce") == nonce
    ]
    named = waiting or [one for one in known if one == said] or known
    if len(named) == 1:
        return named[0]
    why = f"its nonce is {_shorten(nonce)}, and its target is called {_shorten(said)}"
    raise Refused(
        f"{name} is of none of the notebooks of {loaded.path}",
        why=why,
        hint=f"name the target with --target: {', '.join(known)}",
    )


def report_path(context: TargetContext) -> Path:
    """Return where the report of a target lies."""
    return context.folder / "reports" / f"{context.stem}.{context.target}" / "report.json"


def _read_pending_notebook(
    loaded: LoadedSpec, target: str, state: State, system: System
) -> tuple[TargetContext, Mapping[str, Any]]:
    """Return a place and the record of its notebook; raises LockError and Refused where no report
    can be of it.
    """
    lock = read_lock(loaded, system)
    again = (
        f"render it with `provision apply {shlex.quote(str(loaded.path))} --target {target}`, "
        "run it, and add the report that it offers then"
    )
    if lock is None:
        raise LockError(f"there is no {loaded.lock_path}", hint=again)
    record = state.resource(f"{loaded.stem}/{target}", NOTEBOOK_PART)
    if record is None:
        raise Refused(
            f"no notebook was made for {loaded.stem}/{target}",
            why=f"looked in {loaded.folder / 'state.json'}",
            hint=again,
        )
    if moved := list_changed_inputs(loaded.spec, lock):
        raise LockError(
            "the spec moved since the notebook was made", why="; ".join(moved), hint=again
        )
    return get_driver_and_context(loaded, lock, target, system)[1], record


def _expectations(context: TargetContext) -> dict[str, Any]:
    """Return what the cell gives the probe, but for where the environment lies: that is known on
    the runtime only, and nothing judged here hangs on it.
    """
    promised = expectations_of(
        context.effective_spec, context.target, context.lock, context.environment, PurePosixPath()
    )
    target = context.spec.targets[context.target]
    return {**promised, "shared": isinstance(target, ColabTarget) and target.isolation == "system"}


def _refuse_other_target(
    report: Report, name: str, context: TargetContext, record: Mapping[str, Any]
) -> None:
    told = list(_compare_subject(report.document, context, record))
    differing = [what for what, there, ours in told if there != ours]
    if not differing:
        return
    why = "; ".join(
        f"its {what} is {_shorten(there)}, ours is {_shorten(ours)}"
        for what, there, ours in told
        if there != ours
    )
    if "nonce" in differing and not {"spec", "target", "kind"} & set(differing):
        hint = (
            f"open the notebook of {context.address} as it is now, run it, and add the report "
            "that it offers then"
        )
        raise Refused(
            f"{name} is of another rendering of the notebook of {context.address}",
            why=why,
            hint=hint,
        )
    hint = "name its own spec and target with --spec and --target, or run the notebook of this one"
    raise Refused(f"{name} is not of {context.address}", why=why, hint=hint)


def _compare_subject(
    document: Mapping[str, Any], context: TargetContext, record: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    """Yield what says whose a report is: in words, as the report says it, as it is here."""
    subject, lock = document["subject"], document["lock"]
    yield "spec", document["spec"]["name"], context.spec.name
    yield "target", subject["target"], context.target
    yield "kind", subject["kind"], context.spec.targets[context.target].kind
    yield "nonce", subject["nonce"], str(record["nonce"])
    yield "lock digest", lock["digest"], str(record["lock"])
    yield "environment digest", lock["environment_digest"], str(record["digest"])
    yield "spec digest", document["spec"]["digest"], str(_expectations(context)["spec"]["digest"])


def _refuse_outdated(
    loaded: LoadedSpec, context: TargetContext, record: Mapping[str, Any], name: str
) -> None:
    """Refuse a report of a notebook that is not the one that spec and lock make now."""
    if (
        record.get("via") != "browser"
        or (nonce := build_agent_config(context, loaded.facts, read_pinned_uv())["nonce"])
        == record["nonce"]
    ):
        return
    why = (
        f"its nonce is {record['nonce']}, and what spec and lock ask now has {nonce}: "
        "something that was promised then is promised otherwise now"
    )
    hint = (
        f"run `provision apply {shlex.quote(str(loaded.path))} --target {context.target}`, run "
        "the notebook again, and add the report that it offers then"
    )
    raise Refused(f"{name} is of an earlier state of {context.address}", why=why, hint=hint)


def check_probe_version(report: Report, name: str, context: TargetContext) -> None:
    """Raise Refused for a report that another probe wrote than this version's."""
    told, ours = report.document["tool"], probe_digest()
    if told["name"] == "provision" and told["probe_sha256"] == ours:
        return
    why = (
        f"the probe that wrote it is {_shorten(told['probe_sha256'])} of "
        f"{_shorten(told['name'])} {_shorten(str(told.get('version')))}, and this version's is "
        f"{ours}"
    )
    hint = (
        f"make the notebook of {context.address} again with this version of provision and run "
        "it, or add the report with the version that made it"
    )
    raise Refused(f"{name} was written by another probe", why=why, hint=hint)


def check_report_time(report: Report, name: str, stored: Mapping[str, Any], system: System) -> None:
    """Raise Refused for a report that lies in the future, or is older than the `stored` one."""
    told = report.document["subject"]["created_utc"]
    made = _parse_time(told)
    if made is None:
        raise Refused(
            f"the report {name} is damaged",
            why=f"its time is {_shorten(told)!r}",
            hint="take report.json again from where it was made",
        )
    now = system.now()
    if made > datetime.strptime(now, _TIME).replace(tzinfo=UTC) + _AHEAD:
        raise Refused(
            f"{name} lies in the future",
            why=f"it says that it was made at {told}, and here it is {now}",
            hint="set the clock right that is wrong",
        )
    if told < _FIRST:
        why = f"it says that it was made at {told}, before there was a provision to make it"
        raise Refused(
            f"{name} lies in the past",
            why=why,
            hint="set the clock of that machine right, and run the verification there again",
        )
    if told < (earlier := str(stored.get("created_utc", ""))):
        raise Refused(
            f"{name} is older than the report that is filed",
            why=f"it was made at {told}, the filed one at {earlier}",
            hint="add the newest report",
        )


def _has_content(path: Path, content: bytes, system: System) -> bool:
    try:
        return system.read(path, MAX_REPORT_BYTES) == content
    except ExternalError:
        return False


def _parse_time(told: str) -> datetime | None:
    """Return the time that a text in the one spelling of reports means, None for any other text."""
    try:
        made = datetime.strptime(told, _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None
    return made if made.strftime(_TIME) == told else None


def _shorten(text: str) -> str:
    line = escape_line(text)
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "…"
