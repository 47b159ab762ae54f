"""Actions on a job target: its programs in the bucket, and the removal of what is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from provision.adapters.google.instance_commands import InstanceCommand, render_command
from provision.effects.google import DeleteObjects, UploadObjects
from provision.effects.local import RemoveTree
from provision.effects.system import Effect
from provision.effects.vertex import CancelJob
from provision.errors import Refused
from provision.field_types import parse_duration
from provision.plan import Action, Operation
from provision.state import FOREIGN_RECORD_HINT, Ledger, resolve_own_folder
from provision.targets.bucket_location import note_distant_bucket
from provision.targets.context import TargetContext
from provision.targets.vertex_job.agent_config import digest_of_programs, list_objects
from provision.targets.vertex_job.images import describe_image
from provision.targets.vertex_job.observation import JobObservation
from provision.targets.vertex_job.quotas import list_required_quotas
from provision.targets.vertex_job.records import (
    JOB_RECORDS,
    JobRecord,
    ProgramsRecord,
    read_job_intent,
)
from provision.targets.vertex_job.resource_names import get_job_target
from provision.targets.vertex_job.wheels import describe_wheels, locate_wheels


def plan_programs(context: TargetContext, observed: JobObservation) -> Action:
    """Return the action that brings the programs to the bucket of the first region."""
    names, programs = observed.names, dict(observed.programs)
    folder = names.folders[names.regions[0]]
    record = ProgramsRecord(
        f"programs of the job in {folder.removesuffix(f'/{names.lineage}/')}",
        names.project,
        names.regions,
        names.lineage,
        tuple(names.folders.values()),
        digest_of_programs(programs),
    )
    effects: tuple[Effect, ...] = (UploadObjects(list_objects(folder, programs)),)
    old = observed.recorded
    operation, reason = Operation.CREATE, "they are not there yet"
    if old is not None and set(old.folders) == set(record.folders):
        operation, reason = (
            Operation.CHANGE,
            "provision or the code has changed since they were written",
        )
        if old == record:
            operation, reason, effects = Operation.KEEP, "they are up to date", ()
    elif old is not None:
        operation, reason = Operation.CHANGE, "the regions or their buckets have changed"
        left = sorted(set(old.folders) - set(record.folders))
        effects = (*effects, *map(DeleteObjects, filter(_is_own, left)))
    return Action(
        operation,
        context.address,
        record.part,
        record.title,
        reason,
        effects,
        record.to_json(),
        tuple(_notes(context, observed)),
    )


def plan_removals(address: str, folder: Path, ledger: Ledger) -> Iterator[Action]:
    """Yield the removal of everything recorded or begun at an address; a job ends first."""
    reason = "destroy was requested"
    recorded: set[str] = set()
    parts = sorted(ledger.state.parts(address).items(), key=lambda item: item[0] not in JOB_RECORDS)
    jobs: list[Action] = []
    others: list[Action] = []
    for part, document in parts:
        title = str(document.get("title", part))
        effects: tuple[Effect, ...]
        notes: tuple[str, ...] = ()
        if part in JOB_RECORDS:
            job = JOB_RECORDS[part].from_json(document)
            recorded.add(job.nonce)
            reports = (resolve_own_folder(folder, path, address) for path in job.paths)
            effects = (cancel_job(job), *map(RemoveTree, reports))
            jobs.append(Action(Operation.DESTROY, address, part, title, reason, effects))
            continue
        if part == ProgramsRecord.part:
            programs = ProgramsRecord.from_json(document)
            folders = tuple(filter(_is_own, programs.folders))
            effects, notes = tuple(map(DeleteObjects, folders)), tuple(map(_note_wheels, folders))
        else:
            paths = document.get("paths", ())
            effects = tuple(RemoveTree(resolve_own_folder(folder, path, address)) for path in paths)
        others.append(Action(Operation.DESTROY, address, part, title, reason, effects, notes=notes))
    for intent in ledger.find_all_interrupted(address):
        if intent.part in JOB_RECORDS and intent.details.get("nonce") not in recorded:
            why = "an interrupted run may have started it"
            effects = (cancel_job(read_job_intent(intent)),)
            title = "incomplete custom job"
            jobs.append(Action(Operation.DESTROY, address, intent.part, title, why, effects))
    yield from (*jobs, *others)


def cancel_job(record: JobRecord) -> CancelJob:
    """Return the effect that ends a recorded job; raises Refused for a record that is not ours."""
    if not record.nonce or not record.lineage:
        raise Refused(
            "refusing to cancel a custom job",
            why="the state lists a job that lacks the label provision uses to identify its jobs",
            hint=FOREIGN_RECORD_HINT,
        )
    return CancelJob(record.parent, record.nonce, record.lineage)


def describe_price(context: TargetContext, observed: JobObservation) -> str:
    """Return the price of one verification, as far as the facts contain it."""
    target, offer = get_job_target(context), observed.offer
    limit = target.max_duration
    if target.capacity.persistent_resource is not None:
        return "cost: none beyond that of the persistent resource"
    if offer is None:
        return f"cost: at most {limit} of these machines; their price is unknown"
    is_cheaper = target.capacity.strategy == "spot" or target.capacity.flex_start is not None
    hourly = offer.dollars * target.replicas
    most = hourly * parse_duration(limit) / 3600
    return (
        f"cost: {'below ' if is_cheaper else ''}${hourly:.2f} per hour in {offer.region}, at most "
        f"${most:.2f} for {limit}, without disks and traffic: "
        f"{observed.facts.job_properties['price factor'].value} times the Compute Engine price on "
        f"demand ({offer.evidence.confidence} confidence)"
    )


def _notes(context: TargetContext, observed: JobObservation) -> Iterator[str]:
    target, names = get_job_target(context), observed.names
    gpu = "" if context.spec.gpu.is_none else f" with {context.spec.gpu}"
    regions = ", then ".join(names.regions)
    yield f"job: {target.replicas} x {observed.machine_type}{gpu}, in {regions}"
    yield describe_price(context, observed)
    machine = observed.facts.machines.get(observed.machine_type)
    metrics = list_required_quotas(context, observed.card, machine, observed.facts)
    counts = (f"{name} ({count})" if count else name for name, count in metrics.items())
    yield f"quota that counts: {', '.join(counts)}"
    yield describe_image(observed.image)
    for region, problem in observed.short_quotas.items():
        yield f"no job in {region}: {problem}"
    for region, bucket in observed.buckets.items():
        yield from note_distant_bucket(bucket, region)
    if target.environment == "baked":
        yield "nothing is installed: the packages of the image are compared with the lock"
    if observed.wheels is not None:
        yield describe_wheels(observed.wheels)
    if target.replicas > 1:
        setup = "install the environment, " if target.environment == "install" else ""
        yield f"all machines {setup}meet, and are verified together"
    elsewhere = (
        "in the next region if one lacks quota or capacity, and " if names.regions[1:] else ""
    )
    yield f"retried: {elsewhere}once after an internal error; never after a failed verification"


def _note_wheels(folder: str) -> str:
    """Return the note that the wheels next to the folder of a target stay."""
    wheels = locate_wheels(folder.rsplit("/", 3)[0])
    command = render_command(InstanceCommand("delete-objects", "", "", wheels))
    return (
        f"wheels in {wheels}, if any, stay, because other targets may use them; `{command}` "
        "deletes them"
    )


def _is_own(folder: str) -> bool:
    """Return whether a recorded address is one that provision writes: never a whole bucket."""
    return folder.startswith("gs://") and "/provision-" in folder and folder.endswith("/")
