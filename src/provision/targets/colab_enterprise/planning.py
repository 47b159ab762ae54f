"""Actions on a runtime template: creation, change by mask, replacement, removal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from provision.effects.local import RemoveTree
from provision.effects.system import Effect
from provision.effects.vertex import CreateTemplate, DeleteTemplate, UpdateTemplate
from provision.errors import Refused
from provision.field_types import parse_duration
from provision.plan import Action, Operation
from provision.state import FOREIGN_RECORD_HINT, Ledger, resolve_own_folder
from provision.targets.bucket_location import note_distant_bucket
from provision.targets.colab_enterprise.observation import TemplateObservation
from provision.targets.colab_enterprise.records import (
    TemplateRecord,
    build_intent,
    is_template_part,
)
from provision.targets.colab_enterprise.resource_names import get_enterprise_target
from provision.targets.colab_enterprise.template_body import build_patch
from provision.targets.colab_enterprise.verification import is_runnable, plan_execution_removal
from provision.targets.context import TargetContext
from provision.targets.execution_jobs import ExecutionRecord, journal_name

RUNTIMES_NOTE = "runtimes that were created from the old template keep running unchanged"


def plan_template(context: TargetContext, observed: TemplateObservation) -> Action:
    """Return the action that makes the template as declared."""
    names, recorded = observed.names, observed.recorded
    create = CreateTemplate(names.resource_name, observed.body)
    notes = tuple(_notes(context, observed))
    if recorded is not None and recorded.resource_name != names.resource_name:
        old = DeleteTemplate(recorded.resource_name, recorded.lineage)
        fields = [
            f"{field}: {getattr(recorded, field)} -> {getattr(names, field)}"
            for field in ("project", "region")
            if getattr(recorded, field) != getattr(names, field)
        ]
        reason = "the project and region of a template cannot be changed"
        effects = (create, old) if observed.template is None else (old,)
        return _action(context, observed, Operation.REPLACE, reason, effects, (*fields, *notes))
    if observed.template is None:
        reason = "it does not exist yet"
        if observed.intent is not None and observed.intent.verb == Operation.REPLACE:
            reason = "an earlier run deleted it to replace it, but was interrupted"
        elif recorded is not None:
            reason = "it was deleted outside of provision"
        return _action(context, observed, Operation.CREATE, reason, (create,), notes)
    return _plan_existing(context, observed, create, notes)


def _plan_existing(
    context: TargetContext,
    observed: TemplateObservation,
    create: CreateTemplate,
    notes: tuple[str, ...],
) -> Action:
    name, changes = observed.names.resource_name, observed.changes
    fields = tuple(
        f"{change.field}: {change.actual or 'not set'} -> {change.desired or 'not set'}"
        for change in changes
    )
    if observed.needs_replacement:
        immutable = [change.field for change in changes if not change.mask]
        reason = f"{', '.join(immutable)} of a template cannot be changed in place"
        if observed.is_foreign:
            reason = "it is adopted from another state (--adopt), and its labels cannot be changed"
        effects = (DeleteTemplate(name, observed.owner), create)
        notes = (*fields, RUNTIMES_NOTE, *notes)
        return _action(context, observed, Operation.REPLACE, reason, effects, notes)
    if changes:
        reason = f"{', '.join(change.field for change in changes)} changed"
        update = UpdateTemplate(name, *build_patch(observed.body, changes))
        notes = (*fields, "existing runtimes are not changed", *notes)
        return _action(context, observed, Operation.CHANGE, reason, (update,), notes)
    operation, reason = Operation.KEEP, "it is up to date"
    if observed.recorded is None:
        operation, reason = (
            Operation.CHANGE,
            "it was created by an interrupted run and is now adopted",
        )
    return _action(context, observed, operation, reason, (), notes)


def plan_former_removals(context: TargetContext, observed: TemplateObservation) -> Iterator[Action]:
    """Yield the deletion of templates that an interrupted replacement left."""
    current = {observed.names.resource_name}
    if observed.recorded is not None:
        current.add(observed.recorded.resource_name)
    for part, record in observed.former.items():
        if record.resource_name not in current:
            title = f"replaced {record.title} in {record.region} in project {record.project}"
            reason = "an earlier run was interrupted before deleting it"
            effects = (_deletion(record),)
            yield Action(Operation.DESTROY, context.address, part, title, reason, effects)


def plan_removals(address: str, folder: Path, ledger: Ledger) -> Iterator[Action]:
    """Yield the removal of everything recorded or begun at an address."""
    reason = "destroy was requested"
    names: set[str] = set()
    # A job that runs on the template ends first.
    parts = sorted(
        ledger.state.parts(address).items(), key=lambda item: item[0] != ExecutionRecord.part
    )
    for part, document in parts:
        title = str(document.get("title", part))
        effects: tuple[Effect, ...]
        if is_template_part(part):
            record = TemplateRecord.from_json(document)
            names.add(journal_name(record.resource_name))
            effects = (_deletion(record),)
            notes = (RUNTIMES_NOTE.replace("old ", ""),)
            yield Action(Operation.DESTROY, address, part, title, reason, effects, notes=notes)
            continue
        if part == ExecutionRecord.part:
            job = ExecutionRecord.from_json(document)
            names.add(journal_name(job.resource_name))
            reports = (resolve_own_folder(folder, path, address) for path in job.paths)
            effects = (*plan_execution_removal(job), *map(RemoveTree, reports))
            yield Action(Operation.DESTROY, address, part, title, reason, effects)
            continue
        paths = document.get("paths", ())
        effects = tuple(RemoveTree(resolve_own_folder(folder, path, address)) for path in paths)
        yield Action(Operation.DESTROY, address, part, title, reason, effects)
    for intent in ledger.find_all_interrupted(address):
        if not intent.names or names.issuperset(intent.names):
            continue
        why = "an interrupted run may have left it behind"
        if intent.part == ExecutionRecord.part:
            effects = plan_execution_removal(ExecutionRecord.from_json(intent.details))
            title = "incomplete execution job"
            yield Action(Operation.DESTROY, address, intent.part, title, why, effects)
        else:
            record = TemplateRecord.from_intent(intent)
            title, effects = "incomplete runtime template", (_deletion(record),)
            yield Action(Operation.DESTROY, address, intent.part, title, why, effects)


def _deletion(record: TemplateRecord) -> DeleteTemplate:
    """Return the deletion of a recorded template; raises Refused for a name that is not ours."""
    if not record.template.startswith("provision-") or not record.lineage:
        raise Refused(
            f"refusing to delete {record.template or 'the template'}",
            why="the state lists a template that `provision` could not have created",
            hint=FOREIGN_RECORD_HINT,
        )
    return DeleteTemplate(record.resource_name, record.lineage)


def _action(
    context: TargetContext,
    observed: TemplateObservation,
    operation: Operation,
    reason: str,
    effects: tuple[Effect, ...],
    notes: tuple[str, ...],
) -> Action:
    names = observed.names
    record = TemplateRecord(
        f"runtime template {names.template}",
        names.project,
        names.region,
        names.template,
        names.lineage,
        body=observed.body,
    )
    intent = build_intent(context.address, operation, record)
    return Action(
        operation,
        context.address,
        record.part,
        record.title,
        reason,
        effects,
        record.to_json(),
        notes,
        intent,
        replaced=_find_replaced(observed, effects),
        settles=intent.names,
    )


def _find_replaced(
    observed: TemplateObservation, effects: tuple[Effect, ...]
) -> Mapping[str, Mapping[str, Any]]:
    """Return the recorded template that an action deletes elsewhere, by its former part."""
    old = observed.recorded
    deleted = {effect.name for effect in effects if isinstance(effect, DeleteTemplate)}
    if old is None or old.resource_name not in deleted - {observed.names.resource_name}:
        return {}
    return {old.former_part: old.to_json()}


def _notes(context: TargetContext, observed: TemplateObservation) -> Iterator[str]:
    target, facts = get_enterprise_target(context), observed.facts
    gpu = "" if context.spec.gpu.is_none else f" with {context.spec.gpu}"
    yield f"machine: {observed.machine_choice.machine_type}{gpu}, in {observed.names.region}"
    yield from _price_notes(context, observed)
    yield from observed.machine_choice.notes
    yield from note_distant_bucket(observed.bucket, observed.names.region)
    release = observed.body["softwareConfig"]["colabImage"]["releaseName"]
    known = facts.conditions["enterprise Pythons"].value
    image = f"{release}, for Python {context.spec.python}"
    if not release:
        image = f"the newest release, because only releases with Python {known} can be selected"
    yield f"image: {image}"
    if target.idle_shutdown is None:
        yield "`idle_shutdown: null`: a runtime costs money until someone stops it"


def _price_notes(context: TargetContext, observed: TemplateObservation) -> Iterator[str]:
    """Yield the price of a runtime and of a verification, as far as the facts contain them."""
    offer, factor = observed.machine_choice.offer, observed.facts.conditions["enterprise price"]
    if offer is None:
        yield "cost: a template costs nothing; the price of its machine is unknown"
        return
    dollars = offer.dollars * float(factor.value)
    yield (
        f"cost: a template costs nothing; a runtime costs about ${dollars:.2f} per hour in "
        f"{offer.region}, without disks and traffic: {factor.value} times the Compute Engine price "
        f"({offer.evidence.as_of}; {factor.evidence.confidence} confidence)"
    )
    if is_runnable(context):
        limit = get_enterprise_target(context).max_duration
        most = dollars * parse_duration(limit) / 3600
        yield f"each verification: at most {limit} of this machine, about ${most:.2f}"
