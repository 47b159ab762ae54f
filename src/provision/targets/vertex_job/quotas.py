"""Quotas of a job, compared with the limits of its project before a job is created."""

from __future__ import annotations

import math

from provision.effects.system import Reader
from provision.facts import Card, Facts, load_facts
from provision.facts.job_machines import CPU_METRIC, DISK_METRIC, list_quota_metrics
from provision.facts.schema_platforms import MachineType
from provision.field_types import parse_size
from provision.targets.context import TargetContext
from provision.targets.vertex_job.resource_names import JobNames, get_job_target


def find_short_quotas(
    context: TargetContext,
    names: JobNames,
    card: Card | None,
    machine: MachineType | None,
    reader: Reader,
) -> dict[str, str]:
    """Return why the quota of a region is too small for the job, by region.

    Only limits can be read: a job for which too much is in use is queued. Limits that cannot be
    read are ignored, and so are those of machines that are reserved or in a persistent resource.
    """
    capacity = get_job_target(context).capacity
    if capacity.reservation is not None or capacity.persistent_resource is not None:
        return {}
    limits = reader.cloud().job_quotas(names.project)
    required = list_required_quotas(context, card, machine, load_facts())
    short = {}
    for region in names.regions:
        problems = []
        for metric, count in required.items():
            own = (limits or {}).get(metric, {})
            limit = own.get(region, own.get("", -1))
            if 0 <= limit < count:
                problems.append(f"quota {metric} is {limit}, the job needs {count}")
        if problems:
            short[region] = "; ".join(problems)
    return short


def list_required_quotas(
    context: TargetContext, card: Card | None, machine: MachineType | None, facts: Facts
) -> dict[str, int]:
    """Return how much of each metric the whole job needs; 0 if that is not known."""
    target = get_job_target(context)
    preemptible = target.capacity.strategy == "spot" or target.capacity.flex_start is not None
    required = {}
    for metric in list_quota_metrics(card, facts, preemptible=preemptible):
        if metric == DISK_METRIC:
            if target.boot_disk.type != "ssd":
                continue
            each = math.ceil(parse_size(target.boot_disk.size) / 2**30)
        elif metric.endswith(CPU_METRIC.rpartition("_")[2]):
            each = 0 if machine is None else machine.vcpus
        else:
            each = context.spec.gpu.count
        required[metric] = each * target.replicas
    return required
