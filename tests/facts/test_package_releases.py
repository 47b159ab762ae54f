"""Sets of releases: what specifiers admit, the Pythons, and requirements on some Pythons."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from provision.facts.package_releases import (
    PackageReleases,
    has_wheel,
    load_releases,
    requirements_on,
)

VERSIONS = ("0.9", "1.0", "1.1", "1.1.1", "2.0", "2.1")
TABLE = PackageReleases(
    "own",
    [
        ["own", "0.9 1.0", ">=3.7", "3.7-3.9", ""],
        ["own", "1.1 1.1.1 2.0 2.1", ">=3.8", "3.8-", ""],
    ],
)
_CLAUSES = st.tuples(
    st.sampled_from([">=", ">", "<", "<=", "==", "!=", "~="]), st.sampled_from(VERSIONS)
).map("".join)


@given(st.lists(_CLAUSES, max_size=3).map(",".join))
def test_the_known_releases_are_those_that_packaging_admits(specifiers: str) -> None:
    found = TABLE.admitted(specifiers)
    assert found is not None
    known = [version for place, version in enumerate(VERSIONS) if found >> place & 1]
    assert known == list(SpecifierSet(specifiers).filter(VERSIONS))


@pytest.mark.parametrize(
    ("specifiers", "newer"),
    [("", True), (">=1", True), ("<3", True), ("<2.1", False), ("==2.*", True), ("==1.*", False),
     ("==3.0", True), ("~=2.0", True), ("<=2.1", False), ("!=2.*", True)],
)  # fmt: skip
def test_newer_releases_than_the_table_has(specifiers: str, newer: bool) -> None:
    found = TABLE.admitted(specifiers)
    assert found is not None
    assert bool(found & TABLE.newer) is newer


def test_a_release_that_the_table_lacks_is_not_judged() -> None:
    assert TABLE.admitted("==1.0.5") is None


@pytest.mark.parametrize(
    ("python", "may_build", "newest"),
    [("3.7", False, "1.0"), ("3.9", False, "2.1"), ("3.6", False, ""), ("3.7", True, "1.0")],
)
def test_releases_on_a_python(python: str, may_build: bool, newest: str) -> None:
    assert TABLE.newest_of(TABLE.on_python(python, may_build=may_build)) == newest


def test_releases_that_are_published_as_source_only() -> None:
    table = PackageReleases(
        "own", [["own", "1 2", "", "none", ""], ["own", "3", "", "3.8-3.9", ""]]
    )
    assert table.newest_of(table.without_wheel) == "2"
    assert table.newest_of(table.on_python("3.12", may_build=False)) == "2"


def test_requirements_of_some_pythons() -> None:
    text = "numpy>=1.21@3.10-3.11 numpy>=1.26@3.12-3.15 scipy<2,>=1"
    assert requirements_on(text, "3.11") == {"numpy": ">=1.21", "scipy": "<2,>=1"}
    assert requirements_on(text, "3.12") == {"numpy": ">=1.26", "scipy": "<2,>=1"}
    assert requirements_on("?", "3.12") is None
    assert has_wheel("none", "3.12")


def test_every_row_of_the_table_can_be_read() -> None:
    table = load_releases()
    assert len(table) >= 85
    for package in table.values():
        assert package.versions
        for group in package.groups:
            required = requirements_on(group.requires, "3.12")
            assert (required is None) == (group.requires == "?")
            for name, specifiers in (required or {}).items():
                table[name].admitted(specifiers)
