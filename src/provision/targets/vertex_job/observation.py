"""Observation of a job target: its records, the machines it would get, and its buckets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provision.effects.google import ImageDescription
from provision.effects.system import Reader
from provision.facts import Card, Facts, load_facts
from provision.facts.job_machines import choose_job_machine, price_in_job
from provision.facts.machines import MachineOffer, cheapest_offer, list_offers
from provision.field_types import parse_size
from provision.lock import digest_of
from provision.state import Ledger
from provision.targets.bucket_location import read_bucket
from provision.targets.context import TargetContext, find_card
from provision.targets.vertex_job.agent_config import JobProgram, build_programs
from provision.targets.vertex_job.job_body import build_job_spec, build_machine
from provision.targets.vertex_job.quotas import find_short_quotas
from provision.targets.vertex_job.records import ProgramsRecord
from provision.targets.vertex_job.resource_names import (
    JobNames,
    build_job_names,
    get_job_target,
)
from provision.targets.vertex_job.wheels import WheelStock


@dataclass(frozen=True, slots=True)
class JobObservation:
    """Records of a target, and the job that would be created.

    Attributes:
        machine_type: "" if no machine type fits.
        offer: One machine with its price in a job on demand; None if it is unknown.
        buckets: The bucket of each region; {} for one that cannot be read.
        short_quotas: Why the quota of a region is too small for the job, by region.
        wheels: The wheels in the bucket of the first region; None if they were not listed.
    """

    facts: Facts
    names: JobNames
    recorded: ProgramsRecord | None
    programs: Mapping[str, JobProgram]
    card: Card | None
    machine_type: str
    offer: MachineOffer | None
    job_spec: Mapping[str, Any]
    buckets: Mapping[str, Mapping[str, Any]]
    short_quotas: Mapping[str, str]
    image: ImageDescription
    wheels: WheelStock | None = None


def observe_job(context: TargetContext, ledger: Ledger, reader: Reader) -> JobObservation:
    """Return the records, and the request for a job."""
    facts, target = load_facts(), get_job_target(context)
    names = build_job_names(context, ledger.state.lineage)
    card = find_card(context, facts)
    machine_type, offer = _choose_machine(context, card, facts)
    return JobObservation(
        facts,
        names,
        ProgramsRecord.find(ledger.state, context.address),
        build_programs(context),
        card,
        machine_type,
        None if offer is None else price_in_job(offer, facts),
        build_job_spec(context, build_machine(context, machine_type, card)),
        {region: read_bucket(target.bucket_in(region) or None, reader) for region in names.regions},
        find_short_quotas(context, names, card, facts.machines.get(machine_type), reader),
        reader.cloud().image(target.image),
    )


def _choose_machine(
    context: TargetContext, card: Card | None, facts: Facts
) -> tuple[str, MachineOffer | None]:
    """Return the machine type with its price on Compute Engine; ("", None) if none fits."""
    target, count = get_job_target(context), context.spec.gpu.count if card else 0
    region = target.regions[0]
    if target.machine_type == "auto":
        ram = context.spec.requires.ram
        ram_gib = parse_size(ram) / 2**30 if ram else None
        chosen = choose_job_machine(facts, card, count, region, ram_gib)
        return ("" if chosen.machine is None else chosen.machine.name), chosen.offer
    machine = facts.machines.get(target.machine_type)
    if machine is None:
        return target.machine_type, None
    return target.machine_type, cheapest_offer(list_offers((machine,), card, count), region)


def compute_declared_digest(context: TargetContext) -> str:
    """Return the digest of what a run is about: machines, image and environment."""
    facts = load_facts()
    card = find_card(context, facts)
    machine_type, _ = _choose_machine(context, card, facts)
    job_spec = build_job_spec(context, build_machine(context, machine_type, card))
    is_baked = get_job_target(context).environment == "baked"
    return digest_of([json.dumps(job_spec, sort_keys=True), context.environment.digest, is_baked])
