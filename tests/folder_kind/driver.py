"""The driver of the kind `folder`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.effects.local import MakeFolder, RemoveTree, WriteFile
from provision.effects.system import Reader
from provision.errors import ExternalError, ProvisionError, Refused
from provision.facts import load_facts
from provision.kinds.base import Refusal
from provision.lock import digest_of
from provision.plan import Action, Intent, Operation
from provision.spec import Spec, parse_duration
from provision.state import Ledger, State, resolve_own_folder, to_folder_name
from provision.target_facts import find_target_refusals
from provision.targets.base import Driver, Journal, Pending, ProbeEvidence, VerifyOptions
from provision.targets.capabilities import Orphan, OrphanList
from provision.targets.context import Interpreter, TargetContext, declared_variables
from provision.targets.stored_verdict import VerificationRecord
from provision.targets.summary import InstanceSummary, TargetCondition, TargetSummary
from provision.verification import EXIT_CODES, read_report
from provision.verification.device_files import expectations_of
from provision.verification.report import MAX_REPORT_BYTES
from tests.folder_kind.adapter import (
    CreateMachine,
    DeleteMachine,
    FetchReport,
    FolderClient,
    StartRun,
)
from tests.folder_kind.kind import FolderTarget

PART = "machine"
_PREFIX = Path("/machine/environment")


@dataclass(frozen=True, slots=True)
class FolderObservation:
    """The machine with a target's name, what the state records of it, and the state's lineage."""

    machine: Mapping[str, Any] | None
    recorded: Mapping[str, Any] | None
    lineage: str
    serial: int

    @property
    def is_foreign(self) -> bool:
        """Whether another state made the machine."""
        return self.machine is not None and self.machine["lineage"] != self.lineage


class FolderDriver(Driver[FolderObservation]):
    """Machines that are folders behind a service on loopback."""

    platform = "linux-x86_64"
    destroys_from_elsewhere = True

    def owns(self, part: str) -> bool:
        """Return whether a part is a machine."""
        return part == PART

    def observe(self, context: TargetContext, ledger: Ledger, reader: Reader) -> FolderObservation:
        """Return the machine with the target's name."""
        state = ledger.state
        return FolderObservation(
            FolderClient(_target(context).service).machine(_machine_name(context)),
            state.resource(context.address, PART),
            state.lineage,
            state.serial,
        )

    def refusals(self, context: TargetContext, observed: FolderObservation) -> tuple[Refusal, ...]:
        """Return what a folder cannot do, and a machine of another state."""
        found = find_target_refusals(context.spec, context.target, load_facts())
        if not observed.is_foreign or context.adopt:
            return found
        route = ("targets", context.target)
        return (*found, Refusal(route, f"{_machine_name(context)} is another state's", "--adopt"))

    def plan(self, context: TargetContext, observed: FolderObservation) -> tuple[Action, ...]:
        """Return the action on the machine."""
        name, digest = _machine_name(context), context.environment.digest
        address, machine = _target(context).service, observed.machine
        title = f"folder {name}"
        full_name = f"{address}/{name}"
        nonce = digest_of([observed.lineage, observed.serial, digest])[7:39]
        operation, reason = Operation.CREATE, "it does not exist"
        effects: tuple[Any, ...] = (
            CreateMachine(address, name, _run(context, nonce, observed.lineage)),
        )
        if machine is not None and (observed.is_foreign or machine["digest"] != digest):
            operation, reason = Operation.CHANGE, "its environment or its state is another"
            effects = (StartRun(address, name, _run(context, nonce, observed.lineage)),)
        elif machine is not None:
            operation, reason = Operation.KEEP, "it is as declared"
            effects, nonce = (), str(machine["nonce"])
        record = {
            "title": title,
            "machine": name,
            "service": address,
            "lineage": observed.lineage,
            "nonce": nonce,
        }
        details = {key: record[key] for key in ("machine", "service", "lineage", "nonce")}
        intent = Intent(context.address, PART, str(operation), names=(full_name,), details=details)
        return (
            Action(
                operation,
                context.address,
                PART,
                title,
                reason,
                effects,
                record,
                intent=intent,
                settles=(full_name,),
            ),
        )

    def destroy(self, address: str, folder: Path, ledger: Ledger) -> tuple[Action, ...]:
        """Return the deletion of the machine and of its reports."""
        parts = dict(ledger.state.parts(address))
        for intent in ledger.find_all_interrupted(address):
            parts.setdefault(PART, {"title": "incomplete folder", **intent.details})
        return tuple(
            Action(
                Operation.DESTROY,
                address,
                part,
                str(record["title"]),
                "destroy was requested",
                (DeleteMachine(record["service"], record["machine"], record["lineage"]),)
                if part == PART
                else tuple(
                    RemoveTree(resolve_own_folder(folder, path, address))
                    for path in record["paths"]
                ),
            )
            for part, record in parts.items()
        )

    def recover(
        self,
        intent: Intent,
        journal: Journal,
        *,
        planned: bool = False,
        still_running: tuple[str, ...] = (),
    ) -> None:
        """Record the machine that an interrupted action made; the service shows it at once."""
        details = intent.details
        machine = FolderClient(details["service"]).machine(details["machine"])
        recorded = journal.state.resource(intent.address, PART)
        if recorded is None and machine is not None and machine["lineage"] == details["lineage"]:
            record = {
                **details,
                "title": f"folder {details['machine']}",
                "nonce": machine["nonce"],
            }
            journal.record(intent.address, PART, record)
        journal.close_intent(intent)

    def voids_verdict(self, action: Action, state: State) -> bool:
        """Return whether an action starts a run, or finds one that is not recorded."""
        recorded = state.resource(action.address, PART) or {}
        return (action.record or {}).get("nonce") != recorded.get("nonce")

    def verification_location(self, context: TargetContext) -> str:
        """Return that the probe runs on the machine."""
        return "on the machine"

    def reason_for_missing_report(
        self,
        context: TargetContext,
        stored: VerificationRecord,
        state: State,
        reader: Reader,
    ) -> str:
        """Return why the last run has no verdict."""
        record = state.resource(context.address, PART) or {}
        return "" if stored.nonce == record.get("nonce") else "the machine has not reported"

    def verify(
        self, context: TargetContext, journal: Journal, options: VerifyOptions
    ) -> ProbeEvidence | Pending:
        """Wait for the reports of the run; one that was verified runs again."""
        record = _record(context, journal.state)
        stored = VerificationRecord.find(journal.state, context.address)
        if options.rerun or (stored is not None and stored.nonce == record["nonce"]):
            self._request_run(context, journal, record)
        return Pending() if options.detach else self.attach(context, journal)

    def _request_run(
        self, context: TargetContext, journal: Journal, record: Mapping[str, Any]
    ) -> None:
        nonce = journal.system.token()
        run = StartRun(
            record["service"], record["machine"], _run(context, nonce, record["lineage"])
        )
        details = {
            **{key: record[key] for key in ("machine", "service", "lineage")},
            "nonce": nonce,
        }
        title, name = str(record["title"]), f"{record['service']}/{record['machine']}"
        intent = Intent(context.address, PART, "~", names=(name,), details=details)
        action = Action(
            Operation.CHANGE,
            context.address,
            PART,
            title,
            "it is verified again",
            (run,),
            {**record, "nonce": nonce},
            intent=intent,
            settles=(name,),
        )
        journal.perform(self, action)

    def attach(self, context: TargetContext, journal: Journal) -> ProbeEvidence:
        """Wait for the report of each rank; the worst verdict is that of the target."""
        record, system = _record(context, journal.state), journal.system
        folder, nonce = context.reports_folder, str(record["nonce"])
        system.perform(MakeFolder(folder, 0o700), journal.progress)
        timeout_s = float(parse_duration(context.spec.verify.timeout))
        reports = []
        for rank in range(_target(context).ranks):
            path = folder / f"rank-{rank}.json"
            fetch = FetchReport(record["service"], record["machine"], nonce, rank, path, timeout_s)
            system.perform(fetch, journal.progress)
            content = system.read(path, MAX_REPORT_BYTES)
            report = read_report(content, str(path), nonce=nonce)
            if report.environment_digest != context.environment.digest:
                raise ExternalError(f"the report of rank {rank} is of another environment")
            reports.append((EXIT_CODES[report.verdict] != 0, report, content))
        _, worst, content = max(reports, key=lambda item: item[0])
        path = folder / "report.json"
        system.perform(WriteFile(path, content, 0o600), journal.progress)
        return ProbeEvidence(worst, path, nonce=nonce)

    def condition(self, context: TargetContext, ledger: Ledger, reader: Reader) -> TargetCondition:
        """Return the condition of the recorded machine."""
        location = self.location(context.address, context.folder, ledger.state)
        if location is None:
            begun = ledger.find_interrupted(context.address)
            return TargetCondition("incomplete" if begun else "absent", "")
        (action,) = self.plan(context, self.observe(context, ledger, reader))
        conditions = {Operation.KEEP: "current", Operation.CREATE: "gone"}
        return TargetCondition(conditions.get(action.operation, "outdated"), location)

    def location(self, address: str, folder: Path, state: State) -> str | None:
        """Return the name and service of the recorded machine."""
        record = state.resource(address, PART)
        return f"{record['machine']} in {record['service']}" if record is not None else None

    def summarize(
        self, context: TargetContext, state: State, reader: Reader, actions: Sequence[Action]
    ) -> TargetSummary:
        """Return name and service of the machine."""
        record = state.resource(context.address, PART)
        if record is None:
            return TargetSummary()
        return TargetSummary(instance=InstanceSummary(record["machine"], record["service"]))

    def running_notice(self, context: TargetContext, ledger: Ledger) -> str:
        """Return that the machine keeps running."""
        location = self.location(context.address, context.folder, ledger.state)
        return f"{location} keeps running: {context.command('destroy')}" if location else ""

    def list_orphans(
        self, ledgers: Sequence[tuple[Spec, Ledger]], reader: Reader
    ) -> OrphanList | None:
        """Return the machines that none of the ledgers tracks, at the services of the specs."""
        known: set[tuple[str, str]] = set()
        services: dict[str, None] = {}
        for spec, ledger in ledgers:
            records = [*ledger.state.resources.values(), *(one.details for one in ledger.intents)]
            known |= {(str(one.get("machine")), str(one.get("lineage"))) for one in records}
            targets = [one for one in spec.targets.values() if isinstance(one, FolderTarget)]
            services |= dict.fromkeys(target.service for target in targets)
        if not services:
            return None
        orphans: list[Orphan] = []
        failed: dict[str, ProvisionError] = {}
        for address in services:
            try:
                machines = FolderClient(address).machines()
            except ProvisionError as error:
                failed[address] = error
                continue
            orphans += [
                Orphan(
                    f"{address}/{one['name']}",
                    "RUNNING",
                    "",
                    one["spec"],
                    one["target"],
                    f"curl -X DELETE '{address}/machines/{one['name']}?lineage={one['lineage']}'",
                )
                for one in machines
                if (one["name"], one["lineage"]) not in known
            ]
        return OrphanList(tuple(orphans), failed)

    def get_interpreter(self, context: TargetContext) -> Interpreter:
        """Return where programs run on the machine."""
        return Interpreter(_PREFIX / "bin/python", _PREFIX, _PREFIX)

    def get_environment_variables(
        self, context: TargetContext, caller: Mapping[str, str], *, partial: bool = False
    ) -> dict[str, str]:
        """Return the declared variables."""
        return declared_variables(context.spec)


def _target(context: TargetContext) -> FolderTarget:
    target = context.spec.targets[context.target]
    assert isinstance(target, FolderTarget)
    return target


def _machine_name(context: TargetContext) -> str:
    return to_folder_name(context.address)


def _record(context: TargetContext, state: State) -> Mapping[str, Any]:
    record = state.resource(context.address, PART)
    if record is None:
        raise Refused(
            f"nothing is recorded of a machine for {context.address}",
            hint=f"make it with `{context.command('apply')}`",
        )
    return record


def _run(context: TargetContext, nonce: str, lineage: str) -> dict[str, Any]:
    """Return the request of a run: labels of the machine, and what it has to be."""
    expectations = expectations_of(
        context.spec, context.target, context.lock, context.environment, _PREFIX
    )
    return {
        "lineage": lineage,
        "spec": context.stem,
        "target": context.target,
        "digest": context.environment.digest,
        "nonce": nonce,
        "ranks": _target(context).ranks,
        "expectations": expectations,
    }
