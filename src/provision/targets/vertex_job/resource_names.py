"""Names, labels and folders of a job, derived from spec and target alone."""

from __future__ import annotations

from typing import NamedTuple

from provision.kinds import VertexJobTarget
from provision.targets.context import TargetContext
from provision.targets.workbench.resource_names import (
    build_instance_name,
    build_owner_labels,
    to_label_value,
)

RUN_LABEL = "provision-run"


class JobNames(NamedTuple):
    """Names of one target: project, short name, regions in order, and the state's lineage.

    `folders` are gs:// addresses with a slash at their end, by region.
    """

    project: str
    name: str
    regions: tuple[str, ...]
    folders: dict[str, str]
    lineage: str

    def run_folder(self, region: str, nonce: str) -> str:
        """Return the gs:// address of the objects of one run, with a slash at its end."""
        return f"{self.folders[region]}{nonce}/"


def region_name(project: str, region: str) -> str:
    """Return the full name of a region."""
    return f"projects/{project}/locations/{region}"


def get_job_target(context: TargetContext) -> VertexJobTarget:
    """Return the target of a context; the registry selects drivers by kind."""
    target = context.spec.targets[context.target]
    assert isinstance(target, VertexJobTarget)  # noqa: S101
    return target


def build_job_names(context: TargetContext, lineage: str) -> JobNames:
    """Return the names of a target's jobs and objects."""
    target, label = get_job_target(context), to_label_value(lineage)
    name = build_instance_name(target.project, context.stem, context.target)
    regions = tuple(dict.fromkeys(target.regions))
    folders = {region: f"{target.bucket_in(region)}/{name}/{label}/" for region in regions}
    return JobNames(target.project, name, regions, folders, label)


def build_labels(context: TargetContext, names: JobNames, nonce: str) -> dict[str, str]:
    """Return the labels of a job: its owner, and the run by which it is found again."""
    return {**build_owner_labels(context, names.lineage), RUN_LABEL: to_label_value(nonce)}


def list_replicas(count: int) -> tuple[str, ...]:
    """Return the names of a job's replicas: the primary one, then the workers."""
    return ("workerpool0-0", *(f"workerpool1-{number}" for number in range(count - 1)))
