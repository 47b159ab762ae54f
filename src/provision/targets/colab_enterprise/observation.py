"""Observation of a runtime template: what exists, its record, and the differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from provision.effects.system import Reader
from provision.facts import Facts, load_facts
from provision.plan import Intent
from provision.state import Ledger
from provision.targets.bucket_location import read_bucket
from provision.targets.colab_enterprise.records import (
    TemplateRecord,
    find_former_templates,
)
from provision.targets.colab_enterprise.resource_names import (
    TemplateNames,
    build_template_names,
    get_enterprise_target,
)
from provision.targets.colab_enterprise.template_body import (
    TemplateChange,
    build_template_body,
    find_changes,
)
from provision.targets.context import TargetContext, find_card
from provision.targets.workbench.choices import MachineChoice, choose_machine
from provision.targets.workbench.resource_names import (
    LINEAGE_LABEL,
    MANAGED_LABEL,
    SPEC_LABEL,
    TARGET_LABEL,
    to_label_value,
)


@dataclass(frozen=True, slots=True)
class TemplateObservation:
    """A template with its record, the machine chosen for it, and what differs.

    Attributes:
        template: The template with our name; None if there is none.
        owner: The lineage in its label; "" if it has none.
        is_made_for: Its labels name this spec and target, whichever state made it.
        body: The body as it should be.
        bucket: The bucket of its notebook; {} without one, or if it cannot be read.
    """

    facts: Facts
    names: TemplateNames
    template: Mapping[str, Any] | None
    owner: str
    is_made_for: bool
    recorded: TemplateRecord | None
    intent: Intent | None
    machine_choice: MachineChoice
    body: Mapping[str, Any]
    changes: tuple[TemplateChange, ...] = ()
    bucket: Mapping[str, Any] = field(default_factory=dict)
    former: Mapping[str, TemplateRecord] = field(default_factory=dict)

    @property
    def is_foreign(self) -> bool:
        """True if a template with our name exists that this state did not make."""
        return self.template is not None and self.owner != self.names.lineage

    @property
    def needs_replacement(self) -> bool:
        """True if a field differs that no update changes."""
        return any(not change.mask for change in self.changes)


def observe_template(context: TargetContext, ledger: Ledger, reader: Reader) -> TemplateObservation:
    """Return the template of a target, by its name in the declared region."""
    facts, target = load_facts(), get_enterprise_target(context)
    names = build_template_names(context, ledger.state.lineage)
    record = TemplateRecord.find(ledger.state, context.address)
    template = reader.cloud().template(names.resource_name)
    card = find_card(context, facts)
    is_same = record is not None and record.resource_name == names.resource_name
    sent = record.body if record is not None and is_same else None
    existing = {} if template is None else (sent or template).get("machineSpec", {})
    machine = choose_machine(
        context.spec,
        target.machine_type,
        target.region,
        facts,
        card,
        reserved=target.reservation is not None,
        existing=str(existing.get("machineType", "")),
    )
    body = build_template_body(context, names, machine.machine_type, card, facts)
    labels = (template or {}).get("labels", {})
    return TemplateObservation(
        facts,
        names,
        template,
        str(labels.get(LINEAGE_LABEL, "")),
        _is_made_for(labels, context),
        record,
        ledger.find_interrupted(context.address),
        machine,
        body,
        find_changes(body, template, sent) if template is not None else (),
        read_bucket(target.bucket, reader),
        find_former_templates(ledger.state, context.address),
    )


def _is_made_for(labels: Mapping[str, str], context: TargetContext) -> bool:
    names = (to_label_value(context.stem), to_label_value(context.target))
    is_ours = labels.get(MANAGED_LABEL) == "1"
    return is_ours and (labels.get(SPEC_LABEL), labels.get(TARGET_LABEL)) == names
