"""Record of a runtime template in state and journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from provision.plan import Intent, Operation
from provision.state import Record, State
from provision.targets.colab_enterprise.resource_names import template_resource_name
from provision.targets.execution_jobs import journal_name

_FORMER = "replaced-template-"
"""Prefix of the parts that record replaced templates: replaced-template-REGION.PROJECT."""
_FOUND_BY = ("title", "project", "region", "template", "lineage")
"""Fields of a record by which an interrupted creation is found again."""


@dataclass(frozen=True, slots=True)
class TemplateRecord(Record):
    """A runtime template: what identifies it, and the body that was sent last."""

    part: ClassVar[str] = "template"

    title: str
    project: str
    region: str
    template: str
    lineage: str
    kind: str = "colab-enterprise"
    body: Mapping[str, Any] | None = None

    @classmethod
    def from_intent(cls, intent: Intent) -> Self:
        """Return the record of a template whose creation was begun."""
        values: dict[str, Any] = {name: intent.details.get(name, "") for name in _FOUND_BY}
        return cls(**values)

    @property
    def resource_name(self) -> str:
        """The full name of the template."""
        return template_resource_name(self.project, self.region, self.template)

    @property
    def former_part(self) -> str:
        """The part that records the template once it is replaced."""
        return f"{_FORMER}{self.region}.{self.project}"


def is_template_part(part: str) -> bool:
    """Return whether a part records a template, current or replaced."""
    return part == TemplateRecord.part or part.startswith(_FORMER)


def find_former_templates(state: State, address: str) -> dict[str, TemplateRecord]:
    """Return the recorded templates of an address that are to be deleted, by part."""
    return {
        part: TemplateRecord.from_json(document)
        for part, document in state.parts(address).items()
        if part.startswith(_FORMER)
    }


def build_intent(address: str, operation: Operation, record: TemplateRecord) -> Intent:
    """Return the journal entry of an action on a template."""
    details = {key: str(getattr(record, key)) for key in _FOUND_BY}
    names = (journal_name(record.resource_name),)
    return Intent(address, record.part, str(operation), names=names, details=details)
