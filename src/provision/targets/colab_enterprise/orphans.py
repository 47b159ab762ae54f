"""Orphans: runtime templates and running jobs with our labels that no state tracks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from provision.effects.system import Reader
from provision.kinds import ColabEnterpriseTarget
from provision.spec import Spec
from provision.state import Ledger
from provision.targets.capabilities import Orphan, OrphanList
from provision.targets.colab_enterprise.records import TemplateRecord, is_template_part
from provision.targets.execution_jobs import (
    ExecutionRecord,
    has_template,
    is_running,
    to_orphan_job,
)
from provision.targets.orphan_search import collect_orphans
from provision.targets.workbench.resource_names import (
    LINEAGE_LABEL,
    MANAGED_LABEL,
    SPEC_LABEL,
    TARGET_LABEL,
)


def list_orphan_templates(
    ledgers: Sequence[tuple[Spec, Ledger]], reader: Reader
) -> OrphanList | None:
    """Return the templates with our labels that none of the ledgers records or began.

    They are searched in the projects and regions that specs, states and journals name. Returns
    None without one.
    """
    known: set[tuple[str, str]] = set()
    places: dict[tuple[str, str], None] = {}
    for spec, ledger in ledgers:
        records = [
            TemplateRecord.from_json(document)
            for key, document in ledger.state.resources.items()
            if is_template_part(key.rpartition("#")[2])
        ]
        records += [
            TemplateRecord.from_intent(intent)
            for intent in ledger.intents
            if is_template_part(intent.part)
        ]
        known |= {(record.resource_name, record.lineage) for record in records}
        known |= set(_recorded_executions(ledger))
        targets = spec.targets.values()
        own = [target for target in targets if isinstance(target, ColabEnterpriseTarget)]
        places |= dict.fromkeys((target.project, target.region) for target in own)
        places |= dict.fromkeys((record.project, record.region) for record in records)

    def list_orphans(project: str, region: str) -> list[Orphan]:
        cloud = reader.cloud()
        resources = [
            *cloud.templates(project, region),
            *filter(is_running, filter(has_template, cloud.executions(project, region))),
        ]
        return [_to_orphan(resource) for resource in resources if _is_orphan(resource, known)]

    return collect_orphans(places, list_orphans)


def _is_orphan(resource: Mapping[str, Any], known: set[tuple[str, str]]) -> bool:
    labels = resource.get("labels", {})
    identity = (str(resource.get("name", "")), str(labels.get(LINEAGE_LABEL, "")))
    return labels.get(MANAGED_LABEL) == "1" and identity not in known


def _recorded_executions(ledger: Ledger) -> Iterator[tuple[str, str]]:
    for key, document in ledger.state.resources.items():
        if key.endswith(f"#{ExecutionRecord.part}"):
            record = ExecutionRecord.from_json(document)
            yield record.resource_name, record.lineage
    for intent in ledger.intents:
        if intent.part == ExecutionRecord.part:
            record = ExecutionRecord.from_json(intent.details)
            yield record.resource_name, record.lineage


def _to_orphan(resource: Mapping[str, Any]) -> Orphan:
    labels, name = resource.get("labels", {}), str(resource["name"])
    _, project, _, region, collection, short_name = name.split("/")
    if collection != "notebookRuntimeTemplates":
        return to_orphan_job(resource)
    delete = f"gcloud colab runtime-templates delete {short_name} --project={project}"
    created, state = str(resource.get("createTime", "")), "costs nothing by itself"
    spec, target = (str(labels.get(key, "")) for key in (SPEC_LABEL, TARGET_LABEL))
    return Orphan(name, state, created, spec, target, f"{delete} --region={region}")
