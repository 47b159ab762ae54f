"""What a kind knows of the machine that a target gets: chosen machine types, and capacities."""

from __future__ import annotations

from typing import Any

import pytest

from provision.facts import load_facts
from provision.facts.job_machines import choose_job_machine
from provision.kinds.base import Resource, TargetFacts
from provision.spec import Spec
from provision.target_facts import target_facts

FACTS = load_facts()
REGION = "us-central1"
ENTERPRISE = {"kind": "colab-enterprise", "project": "p", "region": REGION, "bucket": "gs://bucket"}
WORKBENCH = {"kind": "workbench", "project": "p", "zones": [f"{REGION}-a"]}


def facts_of(target: dict[str, Any], gpu: str = "none") -> TargetFacts:
    document = {"gpu": gpu, "python": "3.12", "packages": [], "targets": {"it": target}}
    return target_facts(Spec.model_validate(document), FACTS, "it")


def amount(target: dict[str, Any], resource: Resource, gpu: str = "none") -> float | None:
    found = facts_of(target, gpu)
    capacity = found.kind.capacity(resource, found, FACTS)
    return None if capacity is None else capacity.bytes / 2**30


@pytest.mark.parametrize("ram_gib", [None, 8.0, 100.0, 500.0])
def test_a_job_gets_the_cheapest_machine_with_the_declared_ram(ram_gib: float | None) -> None:
    chosen = choose_job_machine(FACTS, None, 0, REGION, ram_gib)
    assert chosen.machine is not None
    assert chosen.machine.ram_gb >= (ram_gib or 0)


def test_no_machine_of_a_job_has_that_much_ram() -> None:
    assert choose_job_machine(FACTS, None, 0, REGION, 1e6).machine is None


def test_shared_memory_of_colab_is_known_for_the_standard_shape_alone() -> None:
    assert amount({"kind": "colab"}, "shm") is not None
    assert amount({"kind": "colab", "shape": "high"}, "shm") is None
    standard = amount({"kind": "colab"}, "ram")
    high = amount({"kind": "colab", "shape": "high"}, "ram")
    assert standard is not None
    assert high is not None
    assert high > standard


def test_a_machine_type_has_the_ram_that_google_documents() -> None:
    for target in (ENTERPRISE, WORKBENCH):
        assert amount({**target, "machine_type": "n1-standard-8"}, "ram") == 30
        assert amount({**target, "machine_type": "unknown-8"}, "ram") is None


def test_only_a_workbench_instance_has_a_data_disk() -> None:
    assert amount({**WORKBENCH, "data_disk": {"size": "200GiB"}}, "disk") == 200
    assert amount(ENTERPRISE, "disk") is None
