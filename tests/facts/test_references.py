"""What one fact table says of another exists there, and figures are such as can be."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from provision.facts import COMPILED_TABLES, Facts, cuda_of, lazy_tables, load_facts
from provision.facts.table_lookup import load_tables
from provision.facts.versions import require_version


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts()


@pytest.fixture(scope="module")
def folder() -> Path:
    """The tables that are loaded on demand."""
    return lazy_tables.LAZY_TABLES_FOLDER


def names(facts: Facts) -> set[str]:
    """The names of all cards."""
    return {card.name for card in facts.cards}


def test_every_cuda_build_of_torch_has_its_code_listed(facts: Facts) -> None:
    for row in facts.torch:
        for flavour in row.builds:
            build = facts.build(row.release, flavour)
            assert build is not None, (row.release, flavour)
            assert build.sm
        assert set(facts.capabilities) >= {
            cc
            for flavour in row.builds
            for cc in facts.builds[f"{row.release}:{flavour}:linux-x86_64"].sm
        }


def test_every_list_of_code_belongs_to_a_build_of_torch(facts: Facts) -> None:
    for key, build in facts.builds.items():
        release = facts.torch_release(build.release)
        assert release is not None, key
        assert build.flavour in release.builds, key
        assert list(build.sm) == sorted(build.sm, key=Version), key
        assert build.ptx == "" or build.ptx in build.sm, key
        assert build.platform in ("linux-x86_64", "linux-aarch64"), key


def test_code_is_within_what_the_toolkit_makes(facts: Facts) -> None:
    for key, build in facts.builds.items():
        toolkit = facts.toolkits.get(cuda_of(build.flavour))
        if toolkit is not None:
            assert require_version(toolkit.cc_min) <= require_version(build.sm[0]), key
            assert require_version(build.sm[-1]) <= require_version(toolkit.cc_max), key
            assert not toolkit.capabilities or set(build.sm) <= set(toolkit.capabilities), key


def test_toolkits_stand_in_order_and_there_is_no_12_7(facts: Facts) -> None:
    listed = [Version(cuda) for cuda in facts.toolkits]
    assert listed == sorted(listed)
    assert "12.7" not in facts.toolkits
    assert set(facts.cudas()) - set(facts.toolkits) == {"10.1", "10.2"}
    for row in facts.toolkits.values():
        assert require_version(row.cc_min) <= require_version(row.cc_max)
        assert set(row.capabilities) <= set(facts.capabilities)
        if row.driver_first is not None and row.driver_bundled is not None:
            assert (
                require_version(row.floor_linux)
                <= require_version(row.driver_first)
                <= require_version(row.driver_bundled)
            )


def test_driver_branches_drop_generations_that_cards_have(facts: Facts) -> None:
    branches = [int(row.branch) for row in facts.drivers]
    assert branches == sorted(branches)
    assert {arch for row in facts.drivers for arch in row.drops_after} <= {
        card.arch for card in facts.cards
    } | {"Maxwell"}
    assert {row.cuda_max for row in facts.drivers} <= set(facts.toolkits)


def test_cards_have_a_capability_of_their_generation(facts: Facts) -> None:
    for card in facts.cards:
        assert facts.capabilities[card.cc].arch == card.arch, card.name
        assert card.memory_gb > 0
        assert not card.tflops or card.tflops_source
        assert set(card.tflops) <= {"fp32", "tf32", "fp16", "bf16", "fp8", "fp4"}
        assert {name for name in (card.gcp, card.workbench, card.vertex) if name} <= set(
            card.aliases
        ), card.name
        assert set(card.lacks) <= set(facts.capabilities[card.cc].features)


def test_a_peak_is_given_only_where_the_hardware_has_the_format(facts: Facts) -> None:
    for card in facts.cards:
        for form in set(card.tflops) & {"tf32", "bf16", "fp8", "fp4"}:
            assert facts.has_feature(card, form), (card.name, form)


def test_machines_and_attachments_name_cards(facts: Facts) -> None:
    assert {row.card for row in facts.machines.values() if row.card} <= names(facts)
    assert {row.card for row in facts.attachments} <= names(facts)
    assert all((row.card == "") == (row.gpus == 0) for row in facts.machines.values())
    largest = max(row.vcpus for row in facts.machines.values() if row.family == "n1")
    assert all(row.vcpus_max <= largest for row in facts.attachments)


def test_zones_name_cards_and_lie_in_their_region(facts: Facts, folder: Path) -> None:
    for row in lazy_tables.load_zones(folder):
        assert row.card in names(facts)
        assert all(zone.startswith(f"{row.region}-") for zone in row.zones)


def test_prices_name_cards_and_machines_and_spot_is_no_dearer(facts: Facts, folder: Path) -> None:
    for row in lazy_tables.load_prices(folder):
        assert row.card == "" or row.card in names(facts)
        assert row.item in facts.machines or row.item in (
            "gpu-attached-to-n1",
            "gpu-part-of-8-gpu-machine",
        ), row.item
        assert 0 < row.spot <= row.on_demand, row
        if row.item in facts.machines:
            assert (row.card, row.gpus) == (
                facts.machines[row.item].card,
                facts.machines[row.item].gpus,
            ), row


def test_images_and_runtimes_run_systems_that_are_known(facts: Facts) -> None:
    for image in facts.images.values():
        assert image.os in facts.systems or image.os == "Container-Optimized OS"
        assert image.cuda == "" or image.cuda in facts.toolkits
    assert {row.family for row in (*facts.image_drivers, *facts.image_changes)} <= set(facts.images)
    pythons = {row.version for row in facts.pythons}
    for runtime in facts.runtimes.values():
        assert facts.systems[runtime.os].glibc == runtime.glibc
        assert runtime.minor in pythons
        assert facts.build(runtime.torch, runtime.flavour) is not None, runtime.runtime


def test_package_sets_agree_with_the_runtimes(facts: Facts, folder: Path) -> None:
    sets = lazy_tables.load_colab_packages(folder)
    assert set(sets) >= set(facts.runtimes)
    for runtime in facts.runtimes.values():
        held = sets[runtime.runtime]
        assert len(held) == runtime.packages
        assert held["torch"] == f"{runtime.torch}+{runtime.flavour}"
        assert (held["numpy"], held["transformers"]) == (runtime.numpy, runtime.transformers)
        assert all(name == canonicalize_name(name) for name in held)
        assert all(Version(version) for version in held.values() if version != "?")
    assert {name for name, row in facts.protected.items() if row.pinned} <= set(sets["latest"])


def test_shapes_name_cards_that_colab_offers(facts: Facts) -> None:
    assert {row.card for row in facts.shapes} == {
        "none",
        *(card.name for card in facts.cards if card.colab),
    }
    assert all(facts.card(row.colab) is not None for row in facts.shapes if row.colab)


def test_runs_of_a_package_stand_in_order_and_their_bounds_parse(facts: Facts) -> None:
    for package, runs in facts.runs.items():
        ends = [Version(end) for run in runs for end in (run.first, run.last)]
        assert ends == sorted(ends), package
        for run in runs:
            SpecifierSet(run.python)
            for bound in run.declared.values():
                SpecifierSet(bound)
            for floor in run.floors.values():
                Version(floor)


def test_runs_and_extensions_name_known_packages(facts: Facts) -> None:
    named = {*facts.runs, *facts.source_only, *facts.numpy_floors} - {
        "jax-cuda12-plugin",
        "jax-cuda13-plugin",
    }
    assert named <= facts.popular | facts.seen
    assert set(facts.numpy_floors) >= {"torch", "pandas", "scipy"}


def test_bitsandbytes_binaries_are_for_cuda_versions_that_exist(facts: Facts) -> None:
    assert {cuda for row in facts.bitsandbytes for cuda in row.cudas} <= set(facts.toolkits)
    assert [row.version for row in facts.bitsandbytes] == sorted(
        (row.version for row in facts.bitsandbytes), key=Version
    )


def test_wheels_for_one_cuda_major_stand_in_order_and_for_majors_that_exist(facts: Facts) -> None:
    for name, rows in facts.cuda_wheels.items():
        assert {row.cuda_major for row in rows} <= {
            cuda.partition(".")[0] for cuda in (*facts.toolkits, "11.8")
        }
        ends = [Version(end) for row in rows for end in (row.first, row.last)]
        assert ends == sorted(ends)
        assert name not in facts.runs or ends[-1] >= Version(facts.runs[name][-1].last)
        assert {row.effect for row in rows} <= {"import", "kernels"}


def test_capability_floors_are_capabilities(facts: Facts) -> None:
    for row in facts.capability_floors:
        assert {row.cc_min, row.cc_max or row.cc_min} <= set(facts.capabilities)


def test_symptoms_and_constraints_are_whole(folder: Path) -> None:
    for symptom in lazy_tables.load_symptoms(folder):
        re.compile(symptom.regex)
        assert symptom.cause
        assert symptom.fix
    constraints = load_tables(COMPILED_TABLES, folder)["constraints"]
    severities = {row.values["severity"] for row in constraints.rows}
    assert severities == {"error", "warning", "info"}


def test_every_version_parses(facts: Facts) -> None:
    for row in facts.torch:
        held = (
            row.release,
            row.glibc,
            row.glibc_aarch64 or row.glibc,
            row.cudnn,
            row.nccl,
            row.cuda_runtime,
            *row.torchvision,
            *row.torchaudio,
            *row.pythons,
        )
        assert all(Version(text) for text in held if text), row.release
        assert row.triton == "" or SpecifierSet(
            row.triton if row.triton.startswith("~=") else f"=={row.triton}"
        )
    for run in facts.transformers:
        assert all(
            Version(text)
            for text in (run.accelerate, run.torch, *run.floors.values(), *run.ceilings.values())
            if text
        ), run.first
    for toolkit in facts.toolkits.values():
        assert all(
            Version(text)
            for text in (
                toolkit.driver_first,
                toolkit.driver_bundled,
                toolkit.floor_linux,
                toolkit.floor_windows,
            )
            if text
        ), toolkit.cuda
    for image in facts.images.values():
        assert all(
            Version(text)
            for text in (image.python, image.torch, image.tensorflow, image.cuda, image.driver)
            if text
        ), image.family
    for runtime in facts.runtimes.values():
        assert all(
            Version(text)
            for text in (
                runtime.python,
                runtime.torch,
                runtime.cudnn,
                runtime.numpy,
                runtime.transformers,
                runtime.glibc,
            )
        ), runtime.runtime
    single = (
        [row.driver for row in facts.image_drivers]
        + [row.first for row in facts.numpy_floors.values()]
        + [row.torch for row in facts.mps.values()]
    )
    assert all(
        Version(text)
        for text in (
            *single,
            *(
                end
                for row in facts.flash_attention
                for end in (row.version, row.torch_first, row.torch_last)
            ),
        )
    )


def test_wheels_of_a_package_stand_in_order_and_for_known_pythons(facts: Facts) -> None:
    known = {row.version for row in facts.pythons}
    for name, rows in facts.wheel_pythons.items():
        ends = [require_version(end) for row in rows for end in (row.first, row.last)]
        assert ends == sorted(ends), name
        assert all(
            not row.newest
            or (row.newest in known and require_version(row.oldest) <= require_version(row.newest))
            for row in rows
        ), name


def test_images_carry_releases_of_torch_that_are_known(facts: Facts) -> None:
    for image in facts.images.values():
        assert image.torch == "" or facts.torch_release(image.torch) is not None, image.family


def test_days_and_months_are_such(facts: Facts) -> None:
    days = [(row.release, row.released) for row in facts.torch] + [
        (row.version, row.end_of_life) for row in facts.pythons
    ]
    days += [
        (row.branch, row.end_of_life)
        for row in facts.drivers
        if row.end_of_life not in (None, "ended")
    ]
    days += [(row.runtime, row.released) for row in facts.runtimes.values()]
    for image in facts.images.values():
        days += [
            (image.family, day)
            for day in (
                image.released,
                image.end_of_support,
                image.end_of_availability,
                image.secure_boot_with_gpu,
            )
            if day
        ]
    for name, day in days:
        assert date.fromisoformat(f"{day}-01" if len(day) == 7 else day) > date(2016, 1, 1), name
