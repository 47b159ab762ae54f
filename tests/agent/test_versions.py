"""Our reading of versions and specifiers agrees with the packaging library."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion
from packaging.version import Version as Theirs

from provision.agent.core.versions import (
    UnreadableVersion,
    is_same_version,
    normalize_name,
    read_version,
    specifier_allows,
)

VERSIONS = [
    "0", "1", "1.0", "1.0.0", "1.1", "1.10", "2.13.0", "2.13.0+cpu", "2.13.0+cu130", "2.13.0+cu130.2", "1.0a1", "1.0b2", "1.0rc1", "1.0.dev3",  # noqa: E501
    "1.0a1.dev2", "1.0.post1", "1.0.post1.dev4", "1.0a2.post3", "1!0.5", "2026.11.15", "1.0-1", "1.0.RC.1", "v1.0", "1.0alpha", "1.0+ubuntu-1", "1.0+1.a",  # noqa: E501
]  # fmt: skip
OPERATORS = ("==", "!=", "<=", ">=", "<", ">", "~=")
SPECIFIERS = [
    *(f"{operator}{bound}" for operator in OPERATORS for bound in ("1.0", "1", "1.0.0", "1.0a1", "1.0rc1", "1.0.post1", "1.0.dev3", "2.13.0", "1!0.5")),  # noqa: E501
    "==1.*", "==1.0.*", "!=1.0.*", "==2.13.*", "==1!0.*", "==2.13.0+cpu", "!=2.13.0+cpu",
    "===1.0", "===2.13.0+CPU", ">=1,<2", ">=1.0,!=1.0.post1,<3", "~=1.0,>1", "",
]  # fmt: skip

release = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(
    lambda parts: ".".join(map(str, parts))
)
suffix = st.sampled_from(
    [
        "",
        "a1",
        "b2",
        "rc3",
        ".post1",
        ".dev2",
        "a1.dev3",
        ".post2.dev1",
        "+cpu",
        "+cu130",
        "rc1+local.2",
    ]
)
versions = st.tuples(st.sampled_from(["", "", "", "1!"]), release, suffix).map("".join)
bounds = st.tuples(release, st.sampled_from(["", "a1", "rc3", ".post1", ".dev2"])).map("".join)
clauses = st.tuples(st.sampled_from(["==", "!=", "<=", ">=", "<", ">", "~="]), bounds).map(
    "".join
) | release.map(lambda text: f"=={text}.*")


def agree(specifier: str, version: str) -> None:
    try:
        wanted = SpecifierSet(specifier).contains(version, prereleases=True)
    except InvalidSpecifier:
        with pytest.raises(UnreadableVersion):
            specifier_allows(specifier, version)
        return
    assert specifier_allows(specifier, version) is wanted


def test_specifiers_agree_with_packaging(subtests: pytest.Subtests) -> None:
    for specifier, version in itertools.product(SPECIFIERS, VERSIONS):
        with subtests.test(f"{specifier} {version}"):
            agree(specifier, version)


@settings(max_examples=600, deadline=None)
@given(specifier=clauses, version=versions)
def test_random_specifiers_agree_with_packaging(specifier: str, version: str) -> None:
    agree(specifier, version)


@settings(max_examples=400, deadline=None)
@given(one=versions, other=versions)
def test_order_and_equality_agree_with_packaging(one: str, other: str) -> None:
    assert (read_version(one).key < read_version(other).key) is (Theirs(one) < Theirs(other))
    assert is_same_version(one, other) is (Theirs(one) == Theirs(other))


@pytest.mark.parametrize(
    "text", ["", "x", "1.x", "1..0", "1.0+", "1.0 0", "latest", "1.0--1", "==1"]
)
def test_what_is_no_version_is_said(text: str) -> None:
    with pytest.raises(InvalidVersion):
        Theirs(text)
    with pytest.raises(UnreadableVersion):
        read_version(text)


@pytest.mark.parametrize(
    "specifier", ["1.0", "=1.0", "~=1", ">=1.0.*", ">1.0+cpu", "==1.0a1.*", ">= x", "==", ">=1;"]
)
def test_what_is_no_specifier_is_said(specifier: str) -> None:
    with pytest.raises(InvalidSpecifier):
        SpecifierSet(specifier)
    with pytest.raises(UnreadableVersion):
        specifier_allows(specifier, "1.0")


def test_builds_of_one_release_are_different_versions() -> None:
    assert not is_same_version("2.13.0", "2.13.0+cpu")
    assert not is_same_version("2.13.0+cu130", "2.13.0+cpu")
    assert is_same_version("2.13", "2.13.0")


def test_a_version_that_cannot_be_read_still_equals_itself() -> None:
    assert is_same_version("2004d-weird", "2004D-weird")
    assert not is_same_version("2004d-weird", "1.0")


@pytest.mark.parametrize("name", ["Foo.Bar", "foo__bar", "FOO-_.bar", "foo"])
def test_names_are_normal(name: str) -> None:
    assert normalize_name(name) in ("foo-bar", "foo")
