"""Machine types of custom jobs, with their prices and quotas."""

from __future__ import annotations

from provision.facts.facts import Facts
from provision.facts.machines import (
    MachineOffer,
    MachineSelection,
    cheapest_offer,
    find_cpu_machines,
    fits_attachment,
    list_offers,
)
from provision.facts.schema_platforms import MachineType
from provision.facts.schema_torch import Card

_LEAST_RAM_GIB = 8.0
"""RAM of a machine without a GPU if the spec requires none: for torch and a small model. Our
choice.
"""
CPU_METRIC, DISK_METRIC = "custom_model_training_cpus", "custom_model_training_pd_ssd"


def is_job_machine(machine: MachineType, facts: Facts) -> bool:
    """Return whether a worker pool may have a machine type."""
    series = facts.job_series.get(machine.name.rpartition("-")[0])
    if series is None or machine.only == "vgpu":
        return False
    return series.least_vcpus <= machine.vcpus <= (series.most_vcpus or machine.vcpus)


def find_job_machines(facts: Facts, card: Card | None, count: int) -> tuple[MachineType, ...]:
    """Return the machine types of jobs with that many GPUs, the smallest first."""
    if card is None:
        machines = find_cpu_machines(facts)
    else:
        machines = tuple(facts.machines_with(card.name, count))
        attachment = facts.attachment(card.name, count)
        if attachment is not None:
            n1 = (machine for machine in facts.machines.values() if machine.family == "n1")
            fitting = (machine for machine in n1 if fits_attachment(machine, attachment))
            machines += tuple(sorted(fitting, key=lambda machine: (machine.vcpus, machine.ram_gb)))
    return tuple(machine for machine in machines if is_job_machine(machine, facts))


def choose_job_machine(
    facts: Facts, card: Card | None, count: int, region: str, ram_gib: float | None
) -> MachineSelection:
    """Return the cheapest machine type of a job in a region for `machine_type: auto`."""
    able, least = find_job_machines(facts, card, count), 0.0 if card else _LEAST_RAM_GIB
    least = least if ram_gib is None else ram_gib
    fit = tuple(machine for machine in able if machine.ram_gb >= least)
    if not fit:
        return MachineSelection(able, least)
    best = cheapest_offer(list_offers(fit, card, count), region)
    return MachineSelection(able, least, best.machine if best else fit[0], best)


def price_in_job(offer: MachineOffer, facts: Facts) -> MachineOffer:
    """Return the price of a machine in a job: Compute Engine's on demand times a factor."""
    factor = facts.job_properties["price factor"]
    dollars = offer.dollars * float(factor.value)
    return offer._replace(dollars=dollars, evidence=factor.evidence)


def list_training_cards(region: str, facts: Facts) -> tuple[str, ...]:
    """Return the names of the GPUs that jobs can have in a region."""
    row = facts.training_regions.get(region)
    return () if row is None else tuple(row.cards.split())


def find_training_regions(card: Card, facts: Facts) -> tuple[str, ...]:
    """Return the regions in which jobs can have a GPU."""
    return tuple(
        region
        for region in facts.training_regions
        if card.name in list_training_cards(region, facts)
    )


def list_quota_metrics(
    card: Card | None, facts: Facts, *, preemptible: bool = False
) -> tuple[str, ...]:
    """Return the quota metrics of a job: of its GPU (if it is known), of its CPUs and disks."""
    row = facts.training_quotas.get(card.name) if card is not None else None
    metrics = (*((row.metric,) if row else ()), CPU_METRIC)
    if preemptible:
        metrics = tuple(name.replace("training_", "training_preemptible_") for name in metrics)
    return (*metrics, DISK_METRIC)
