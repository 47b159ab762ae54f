"""What one fact table says of another exists there, and figures are such as can be."""

from __future__ import annotations

import re

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from provision.facts import cuda_of, load, parts
from provision.facts.packages import Run
from provision.facts.versions import ordered

FACTS = load()
NAMES = {card.name for card in FACTS.cards}


def test_every_cuda_build_of_torch_has_its_code_listed() -> None:
    for row in FACTS.torch:
        for flavour in row.builds:
            build = FACTS.build(row.release, flavour)
            assert build is not None, (row.release, flavour)
            assert build.sm
        assert set(FACTS.capabilities) >= {cc for flavour in row.builds for cc in FACTS.builds[f"{row.release}:{flavour}:linux-x86_64"].sm}


def test_every_list_of_code_belongs_to_a_build_of_torch() -> None:
    for key, build in FACTS.builds.items():
        release = FACTS.torch_release(build.release)
        assert release is not None, key
        assert build.flavour in release.builds, key
        assert list(build.sm) == sorted(build.sm, key=Version), key
        assert build.ptx == "" or build.ptx in build.sm, key
        assert build.platform in ("linux-x86_64", "linux-aarch64"), key


def test_code_is_within_what_the_toolkit_makes() -> None:
    for key, build in FACTS.builds.items():
        toolkit = FACTS.toolkits.get(cuda_of(build.flavour))
        if toolkit is not None:
            assert ordered(toolkit.cc_min) <= ordered(build.sm[0]), key
            assert ordered(build.sm[-1]) <= ordered(toolkit.cc_max), key
            assert not toolkit.capabilities or set(build.sm) <= set(toolkit.capabilities), key


def test_toolkits_stand_in_order_and_there_is_no_12_7() -> None:
    listed = [Version(cuda) for cuda in FACTS.toolkits]
    assert listed == sorted(listed)
    assert "12.7" not in FACTS.toolkits
    assert set(FACTS.cudas()) - set(FACTS.toolkits) == {"10.2"}
    for row in FACTS.toolkits.values():
        assert ordered(row.cc_min) <= ordered(row.cc_max)
        assert set(row.capabilities) <= set(FACTS.capabilities)
        if row.driver_first is not None and row.driver_bundled is not None:
            assert ordered(row.floor_linux) <= ordered(row.driver_first) <= ordered(row.driver_bundled)


def test_driver_branches_drop_generations_that_cards_have() -> None:
    branches = [int(row.branch) for row in FACTS.drivers]
    assert branches == sorted(branches)
    assert {arch for row in FACTS.drivers for arch in row.drops_after} <= {card.arch for card in FACTS.cards} | {"Maxwell"}
    assert {row.cuda_max for row in FACTS.drivers} <= set(FACTS.toolkits)


def test_cards_have_a_capability_of_their_generation() -> None:
    for card in FACTS.cards:
        assert FACTS.capabilities[card.cc].arch == card.arch, card.name
        assert card.memory_gb > 0
        assert not card.tflops or card.tflops_source
        assert set(card.tflops) <= {"fp32", "tf32", "fp16", "bf16", "fp8", "fp4"}
        assert {name for name in (card.gcp, card.workbench, card.vertex) if name} <= set(card.aliases), card.name
        assert set(card.lacks) <= set(FACTS.capabilities[card.cc].features)


def test_a_peak_is_given_only_where_the_hardware_has_the_format() -> None:
    for card in FACTS.cards:
        for form in set(card.tflops) & {"tf32", "bf16", "fp8", "fp4"}:
            assert FACTS.feature(card, form), (card.name, form)


def test_machines_and_attachments_name_cards() -> None:
    assert {row.card for row in FACTS.machines.values() if row.card} <= NAMES
    assert {row.card for row in FACTS.attachments} <= NAMES
    assert all((row.card == "") == (row.gpus == 0) for row in FACTS.machines.values())
    largest = max(row.vcpus for row in FACTS.machines.values() if row.family == "n1")
    assert all(row.vcpus_max <= largest for row in FACTS.attachments)


def test_zones_name_cards_and_lie_in_their_region() -> None:
    for row in parts.zones():
        assert row.card in NAMES
        assert all(zone.startswith(f"{row.region}-") for zone in row.zones)


def test_prices_name_cards_and_machines_and_spot_is_no_dearer() -> None:
    for row in parts.prices():
        assert row.card == "" or row.card in NAMES
        assert row.item in FACTS.machines or row.item in ("gpu-attached-to-n1", "gpu-part-of-8-gpu-machine"), row.item
        assert 0 < row.spot <= row.on_demand, row
        if row.item in FACTS.machines:
            assert (row.card, row.gpus) == (FACTS.machines[row.item].card, FACTS.machines[row.item].gpus), row


def test_images_and_runtimes_run_systems_that_are_known() -> None:
    for image in FACTS.images.values():
        assert image.os in FACTS.systems or image.os == "Container-Optimized OS"
        assert image.cuda == "" or image.cuda in FACTS.toolkits
    assert {row.family for row in (*FACTS.image_drivers, *FACTS.image_changes)} <= set(FACTS.images)
    pythons = {row.version for row in FACTS.pythons}
    for runtime in FACTS.runtimes.values():
        assert FACTS.systems[runtime.os].glibc == runtime.glibc
        assert runtime.minor in pythons
        assert FACTS.build(runtime.torch, runtime.flavour) is not None, runtime.runtime


def test_package_sets_agree_with_the_runtimes() -> None:
    sets = parts.colab_packages()
    assert set(sets) >= set(FACTS.runtimes)
    for runtime in FACTS.runtimes.values():
        held = sets[runtime.runtime]
        assert len(held) == runtime.packages
        assert held["torch"] == f"{runtime.torch}+{runtime.flavour}"
        assert (held["numpy"], held["transformers"]) == (runtime.numpy, runtime.transformers)
        assert all(name == canonicalize_name(name) for name in held)
        assert all(Version(version) for version in held.values() if version != "?")
    assert {name for name, row in FACTS.protected.items() if row.pinned} <= set(sets["latest"])


def test_shapes_name_cards_that_colab_offers() -> None:
    assert {row.card for row in FACTS.shapes} == {"none", *(card.name for card in FACTS.cards if card.colab)}
    assert all(FACTS.card(row.colab) is not None for row in FACTS.shapes if row.colab)


@pytest.mark.parametrize("package", sorted(FACTS.runs))
def test_runs_of_a_package_stand_in_order_and_their_bounds_parse(package: str) -> None:
    ends = [Version(end) for run in FACTS.runs[package] for end in (run.first, run.last)]
    assert ends == sorted(ends)
    for run in FACTS.runs[package]:
        assert isinstance(run, Run)
        SpecifierSet(run.python)
        for bound in run.declared.values():
            SpecifierSet(bound)
        for floor in run.floors.values():
            Version(floor)


def test_runs_and_extensions_name_known_packages() -> None:
    named = {*FACTS.runs, *FACTS.source_only, *FACTS.numpy_floors} - {"jax-cuda12-plugin", "jax-cuda13-plugin"}
    assert named <= FACTS.popular | FACTS.seen
    assert set(FACTS.numpy_floors) >= {"torch", "pandas", "scipy"}


def test_bitsandbytes_binaries_are_for_cuda_versions_that_exist() -> None:
    assert {cuda for row in FACTS.bitsandbytes for cuda in row.cudas} <= set(FACTS.toolkits)
    assert [row.version for row in FACTS.bitsandbytes] == sorted((row.version for row in FACTS.bitsandbytes), key=Version)


def test_capability_floors_are_capabilities() -> None:
    for row in FACTS.capability_floors:
        assert {row.cc_min, row.cc_max or row.cc_min} <= set(FACTS.capabilities)


def test_symptoms_and_constraints_are_whole() -> None:
    for symptom in parts.symptoms():
        re.compile(symptom.regex)
        assert symptom.cause
        assert symptom.fix
    severities = {row.severity for row in parts.constraints().values()}
    assert severities == {"error", "warning", "info"}
