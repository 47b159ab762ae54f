"""Names and labels of a runtime template, derived from spec and target alone."""

from __future__ import annotations

from typing import NamedTuple

from provision.kinds import ColabEnterpriseTarget
from provision.targets.context import TargetContext
from provision.targets.workbench.resource_names import build_instance_name, to_label_value


class TemplateNames(NamedTuple):
    """Names of one target: project, region, short name of the template, and the lineage."""

    project: str
    region: str
    template: str
    lineage: str

    @property
    def resource_name(self) -> str:
        """The full name of the template."""
        return template_resource_name(self.project, self.region, self.template)


def template_resource_name(project: str, region: str, template: str) -> str:
    """Return the full name of a template."""
    return f"projects/{project}/locations/{region}/notebookRuntimeTemplates/{template}"


def get_enterprise_target(context: TargetContext) -> ColabEnterpriseTarget:
    """Return the target of a context; the registry selects drivers by kind."""
    target = context.spec.targets[context.target]
    assert isinstance(target, ColabEnterpriseTarget)  # noqa: S101
    return target


def build_template_names(context: TargetContext, lineage: str) -> TemplateNames:
    """Return the names of a target's template; its lineage is in a label, not in the name."""
    target = get_enterprise_target(context)
    template = build_instance_name(target.project, context.stem, context.target)
    return TemplateNames(target.project, target.region, template, to_label_value(lineage))
