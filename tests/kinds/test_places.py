"""The places of the kinds: their names, and that rules can be asked about each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from provision import source
from provision.commands.shared.spec_text_check import read_text_as_file
from provision.facts import load_facts
from provision.imports.merge import merge_files
from provision.imports.spec_text import write_spec
from provision.kinds import REGISTRY, Registry
from provision.kinds.places import Machine, Place
from provision.spec import Spec
from provision.target_facts import target_facts

FACTS = load_facts()
MACHINE = Machine("3.12", "linux-x86_64", ("Tesla T4",), "470.82.01", "2.36", "2026-11-20")
MEASURED = REGISTRY.measured(MACHINE)
PLACES = {place.name: place for place in MEASURED.places(FACTS)}


def spec_at(place: Place, registry: Registry = MEASURED) -> Spec:
    """Return the spec that files without content are checked with at a place."""
    written = write_spec(
        merge_files(()),
        {place.base: place.target},
        gpu=place.gpu,
        python=place.python,
        platform=place.platform,
    )
    (document,) = source.read_spec_file(Path("provision.yaml"), read_text_as_file(written.text))
    spec, problems = source.validate_source(document, registry)
    assert (document.diagnostics, problems) == ((), ()), place.name
    assert spec is not None
    return spec


def this_machine(**changes: object) -> Place:
    """Return the place that is this machine, with other measurements."""
    registry = REGISTRY.measured(MACHINE._replace(**changes))  # type: ignore[arg-type]
    (place,) = (one for one in registry.places(FACTS) if one.is_this_machine)
    return place


def test_each_name_is_one_word_and_names_one_place() -> None:
    assert len(PLACES) == len(MEASURED.places(FACTS))
    for place in PLACES.values():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*(@[a-z0-9.-]+)?", place.name), place.name
        assert place.base in PLACES
        assert place.description.isprintable()
    assert {place.name for place in PLACES.values() if place.is_default} == {
        "colab-t4",
        "workbench-l4",
    }


def test_the_spec_of_each_place_has_the_machine_of_the_place() -> None:
    for place in PLACES.values():
        spec = spec_at(place)
        assert (str(spec.gpu), spec.python) == (place.gpu, place.python)
        facts = target_facts(spec, FACTS, place.base)
        assert (facts.card is None) == (place.gpu == "none"), place.name
        if not place.is_this_machine:
            assert facts.python is not None, place.name
            assert facts.python.value == place.python


def test_a_card_has_the_same_word_at_all_kinds() -> None:
    words: dict[str, set[str]] = {}
    for place in PLACES.values():
        if not place.is_this_machine:
            words.setdefault(place.gpu, set()).add(place.base.partition("-")[2])
    assert [found for found in words.values() if len(found) > 1] == []
    assert words["A100-40GB"] == {"a100"}
    assert words["A100-80GB"] == {"a100-80gb"}


@pytest.mark.parametrize(
    ("gpus", "platform", "gpu"),
    [
        (None, "linux-x86_64", "none"),
        ((), "linux-x86_64", "none"),
        (None, "macos-arm64", "mps"),
        (("Tesla T4",), "linux-x86_64", "T4"),
        (("NVIDIA A100-SXM4-80GB",) * 2, "linux-x86_64", "A100-80GB:2"),
        (("NVIDIA A100-SXM4-40GB",), "linux-x86_64", "A100-40GB"),
        (("NVIDIA H200",), "linux-x86_64", "H200-141GB"),
        (("NVIDIA GeForce RTX 4060 Ti",), "linux-x86_64", "RTX-4060-Ti"),
        (("NVIDIA GeForce RTX 4070",), "linux-x86_64", "RTX-4070"),
        (("NVIDIA Something {9000}",), "linux-x86_64", "NVIDIA Something 9000"),
        (("{}",), "linux-x86_64", "GPU"),
        (("Tesla T4",) * 40, "linux-x86_64", "T4:16"),
    ],
)
def test_the_gpu_of_this_machine(gpus: tuple[str, ...] | None, platform: str, gpu: str) -> None:
    place = this_machine(gpus=gpus, platform=platform)
    assert place.gpu == gpu
    spec_at(place)


@pytest.mark.parametrize(
    ("python", "path", "words"),
    [
        ("3.12", "", "(Python 3.12, driver 470.82.01)"),
        ("3.12", ".venv", "(Python 3.12 of .venv, driver 470.82.01)"),
        ("3.12", "a\x1b[31mb", r"(Python 3.12 of a\x1b[31mb, driver 470.82.01)"),
        ("", "/usr/bin/python3", "(unknown Python of /usr/bin/python3, driver 470.82.01)"),
    ],
)
def test_this_machine_names_its_python(python: str, path: str, words: str) -> None:
    place = this_machine(python=python, python_path=path)
    assert place.description == f"this machine with T4 {words}"


def test_this_machine_has_the_driver_and_the_library_that_were_measured() -> None:
    facts = target_facts(spec_at(PLACES["this"]), FACTS, "this")
    assert facts.driver is not None
    assert facts.glibc is not None
    assert (facts.driver.value, facts.glibc.value) == ("470.82.01", "2.36")
    assert facts.driver.provider == "this machine"
    unmeasured = target_facts(spec_at(PLACES["this"], REGISTRY), FACTS, "this")
    assert (unmeasured.driver, unmeasured.glibc) == (None, None)
