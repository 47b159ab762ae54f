"""What facts answer: releases, floors, flavours, cards, and what specifiers let through."""

from __future__ import annotations

import subprocess
import sys
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from provision.facts import cuda_of, flavour_of, load_facts
from provision.facts.versions import (
    admitted_versions,
    format_versions,
    has_version_in_range,
    named_versions,
    parse_version,
    require_version,
)

FACTS = load_facts()


@pytest.mark.parametrize(
    ("version", "release"),
    [("2.13.0", "2.13.0"), ("2.13", "2.13.0"), ("2.13.0+cu130", "2.13.0"), ("2.0.1", "2.0.1")],
)
def test_torch_release_is_found(version: str, release: str) -> None:
    found = FACTS.torch_release(version)
    assert found is not None
    assert found.release == release


@pytest.mark.parametrize(
    "version", ["99.0", "2.1.5", "2.13.0rc1", "2.13.0.post1", "2.13.0.1", "nonsense", ""]
)
def test_an_unknown_torch_release_is_none(version: str) -> None:
    assert FACTS.torch_release(version) is None


def test_torch_release_holds_what_was_published() -> None:
    found = FACTS.torch_release("2.11.0")
    assert found is not None
    assert found.default == "cu130"
    assert found.flavours == ("cpu", "cu126", "cu128", "cu129", "cu130")
    assert found.pythons == ("3.10", "3.11", "3.12", "3.13", "3.14")
    older = FACTS.torch_release("2.5.1")
    assert older is not None
    assert "3.13" in older.pythons_on("linux-x86_64")
    assert "3.13" not in older.pythons_on("linux-aarch64")


@pytest.mark.parametrize(
    ("transformers", "floor", "certain"),
    [
        ("5.23.0", "1.3.0", "1.3.0"),
        ("5.5.3", "1.3.0", "1.3.0"),
        ("4.57.6", "1.3.0", "1.3.0"),
        ("4.52.4", "1.3.0", "1.3.0"),
        ("4.51.3", "0.26.0", "0.26.0"),
        ("4.29.2", "0.19.0", "0.19.0"),
        ("4.30.0", "0.20.2", "0.19.0"),
        ("4.29.0", "0.19.0", None),
    ],
)
def test_accelerate_floor(transformers: str, floor: str, certain: str | None) -> None:
    found = FACTS.accelerate_floor(transformers)
    assert found is not None
    assert (found.version, found.certain) == (floor, certain)


@pytest.mark.parametrize("transformers", ["4.28.1", "4.0.0", "5.99.0", "99.0", "nonsense"])
def test_no_accelerate_floor(transformers: str) -> None:
    assert FACTS.accelerate_floor(transformers) is None


@pytest.mark.parametrize(
    ("transformers", "floor"),
    [("4.52.4", "2.1"), ("5.0.0", "2.2"), ("5.14.1", "2.4"), ("5.19.0", "2.5"), ("5.23.0", "2.6")],
)
def test_torch_floor(transformers: str, floor: str) -> None:
    found = FACTS.torch_floor(transformers)
    assert found is not None
    assert found.version == floor


def test_a_release_older_than_the_table_has_no_floor() -> None:
    few = FACTS.with_tables(transformers=FACTS.transformers[-1:])
    assert few.accelerate_floor("5.23.0") is not None
    assert few.accelerate_floor("5.22.0") is None


def test_knows_transformers() -> None:
    assert FACTS.has_transformers_release("5.5.5")
    assert not FACTS.has_transformers_release("5.99")
    assert not FACTS.has_transformers_release("4.19.0")
    assert not FACTS.has_transformers_release("nonsense")


def test_flavours_and_their_index() -> None:
    assert FACTS.flavour_index("cu128") == "https://download.pytorch.org/whl/cu128"
    assert FACTS.flavour_index("cpu") == "https://download.pytorch.org/whl/cpu"
    for cuda in ("none", *FACTS.cudas()):
        assert cuda_of(flavour_of(cuda)) == cuda


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("L4", "L4"),
        ("l4", "L4"),
        ("NVIDIA_TESLA_T4", "T4"),
        ("G4", "RTX-PRO-6000"),
        ("h100", "H100-80GB"),
        ("A100", "A100-40GB"),
    ],
)
def test_a_card_is_found_by_any_of_its_names(name: str, card: str) -> None:
    found = FACTS.card(name)
    assert found is not None
    assert found.name == card


def test_an_unknown_card_is_none() -> None:
    assert FACTS.card("Z999") is None


def test_completions_are_values_of_the_spec() -> None:
    offered = FACTS.completions()
    assert {"none", "mps", "L4", "T4"} <= set(offered["gpu"])
    assert {"3.11", "3.14"} <= set(offered["python"])
    assert offered["cuda"][:2] == ["auto", "none"]
    assert "12.8" in offered["cuda"]
    assert "12.7" not in offered["cuda"]


@pytest.mark.parametrize(
    ("specifiers", "floor", "answer"),
    [
        ("", "1.1.0", True),
        (">=0.30", "1.1.0", True),
        ("<1", "1.1.0", False),
        ("<=1.1", "1.1.0", True),
        ("==1.*", "1.1.0", True),
        ("==1.0.*", "1.1.0", False),
        ("~=1.0", "1.1.0", True),
        ("~=1.0.3", "1.1.0", False),
        (">1.1,<1.2", "1.1", True),
        (">=1.1,!=1.1.*,<1.2", "1.1", False),
        ("==2.0.1", "2.0.1", True),
        (">=3,<2", "0.1", False),
        ("===weird", "1.0", False),
    ],
)
def test_reaches(specifiers: str, floor: str, answer: bool) -> None:
    assert has_version_in_range(SpecifierSet(specifiers), floor) is answer


_SMALL = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)).map(
    lambda parts: ".".join(map(str, parts))
)
_CLAUSE = st.one_of(
    st.tuples(st.sampled_from([">=", "<=", ">", "<", "==", "!=", "~="]), _SMALL).map("".join),
    st.tuples(st.sampled_from(["==", "!="]), st.tuples(st.integers(0, 2), st.integers(0, 2))).map(
        lambda pair: f"{pair[0]}{pair[1][0]}.{pair[1][1]}.*"
    ),
)
_GRID = [
    Version(".".join(map(str, parts))) for parts in product(range(4), range(4), range(4), (0, 1))
]


@given(st.lists(_CLAUSE, max_size=3).map(",".join), _SMALL)
def test_reaches_agrees_with_trying_every_version(text: str, floor: str) -> None:
    """The grid holds a version in every interval that specifiers over 0..2 can leave."""
    specifiers = SpecifierSet(text)
    tried = any(
        version >= Version(floor) and specifiers.contains(version, prereleases=True)
        for version in [*_GRID, Version("99")]
    )
    assert has_version_in_range(specifiers, floor) is tried


def test_words_about_versions() -> None:
    assert format_versions(["1"]) == "1"
    assert format_versions(["1", "2"]) == "1 and 2"
    assert format_versions(["1", "2", "3"]) == "1 to 3"
    assert admitted_versions(SpecifierSet(">=2"), ("1.0", "2.0", "3.0rc1")) == ("2.0", "3.0rc1")
    assert named_versions(SpecifierSet("==2.1.*,>=1")) == (Version("1"), Version("2.1"))
    assert parse_version("x") is None


def test_loading_takes_neither_yaml_nor_pydantic() -> None:
    program = (
        "import sys; from provision.facts import load_facts; load_facts(); print(sorted({'yaml', "
        "'pydantic', 'click', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_flash_attn_2_8_3_post1_has_wheels_of_its_release_alone() -> None:
    row = next(row for row in FACTS.flash_attention if row.version == "2.8.3.post1")
    assert (row.torch_first, row.torch_last, row.cuda_majors) == ("2.4", "2.8", ("12",))
    assert row.pythons == ("3.9", "3.10", "3.11", "3.12", "3.13")


@pytest.mark.parametrize(
    ("release", "below"), [("1.26.1", "<3.13"), ("1.26.0", "<3.13"), ("1.26.2", ""), ("1.25.2", "")]
)
def test_numpy_1_26_declares_a_newest_python_at_first(release: str, below: str) -> None:
    row = next(
        row
        for row in FACTS.runs["numpy"]
        if require_version(row.first) <= require_version(release) <= require_version(row.last)
    )
    assert row.python == f">=3.9{',' + below if below else ''}"
