"""Performs the effects on Vertex AI."""

from __future__ import annotations

from provision.adapters.google.errors import CloudError, fatal_error
from provision.adapters.google.vertex import VertexApi
from provision.effects.service import ServiceEffect
from provision.effects.system import ProgressCallback
from provision.effects.vertex import CreateTemplate, DeleteTemplate, UpdateTemplate

_LINEAGE_LABEL = "provision-lineage"


def perform(effect: ServiceEffect, vertex: VertexApi, progress: ProgressCallback) -> None:
    """Perform one effect. May block for minutes; raises CloudError."""
    match effect:
        case CreateTemplate():
            _create_template(effect, vertex, progress)
        case UpdateTemplate(name, body, mask):
            progress(f"update: {mask}")
            vertex.update_template(name, body, mask)
        case DeleteTemplate(name, lineage):
            template = vertex.template(name)
            if template is None or template.get("labels", {}).get(_LINEAGE_LABEL) != lineage:
                return
            progress(f"delete: {name.rpartition('/')[2]}")
            vertex.delete_template(name, progress)
        case _:
            raise AssertionError(f"not an effect on Vertex AI: {effect!r}")


def _create_template(effect: CreateTemplate, vertex: VertexApi, progress: ProgressCallback) -> None:
    """Create a template; a repeated request finds the one that the first request created."""
    progress(f"request: {effect.name.rpartition('/')[2]}")
    try:
        vertex.create_template(effect.name, effect.body, progress)
    except CloudError as error:
        if error.failure.kind != "exists":
            raise
        template = vertex.template(effect.name) or {}
        lineage = template.get("labels", {}).get(_LINEAGE_LABEL)
        if not lineage or lineage != effect.body["labels"][_LINEAGE_LABEL]:
            raise fatal_error(
                "foreign",
                "a runtime template with this name exists that this target does not own",
                f"{effect.name} does not have the label of this state",
                "rename the spec file or the target, or delete the template yourself",
            ) from error
