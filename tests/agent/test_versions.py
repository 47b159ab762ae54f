"""Our reading of versions and specifiers agrees with the packaging library."""

from __future__ import annotations

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

numbers = st.integers(0, 30).map(str)
releases = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(
    lambda parts: ".".join(map(str, parts))
)
separators = st.sampled_from(["", ".", "-", "_"])
pre_releases = st.tuples(
    separators,
    st.sampled_from(["a", "b", "rc", "alpha", "beta", "c", "pre", "preview", "RC"]),
    separators,
    numbers | st.just(""),
)
post_releases = st.tuples(
    separators, st.sampled_from(["post", "rev", "r"]), separators, numbers | st.just("")
) | st.tuples(st.just("-"), numbers)
dev_releases = st.tuples(separators, st.just("dev"), numbers | st.just(""))
locals_ = st.sampled_from(["+cpu", "+cu130", "+cu130.2", "+1.a", "+ubuntu-1", "+CU130"])


def optional(part: st.SearchStrategy[tuple[str, ...]]) -> st.SearchStrategy[str]:
    """A part of a version, more often absent than not."""
    return st.just("") | st.just("") | part.map("".join)


prefixes = st.sampled_from(["", "", "", "v", "1!", "0!"])
public = st.tuples(
    prefixes, releases, optional(pre_releases), optional(post_releases), optional(dev_releases)
).map("".join)
versions = st.tuples(public, st.just("") | st.just("") | locals_).map("".join)
operators = st.sampled_from(["==", "!=", "<=", ">=", "<", ">", "~=", "==="])
clauses = (
    st.tuples(operators, public)
    | st.tuples(st.sampled_from(["==", "!="]), versions)
    | st.tuples(st.sampled_from(["==", "!="]), prefixes.filter(lambda p: p != "v"), releases).map(
        lambda parts: (*parts, ".*")
    )
).map("".join)
specifiers = st.lists(clauses, max_size=3).map(",".join)
near = st.shared(versions, key="version")
"""One version for several parts of an example, so that bounds are met exactly."""


@settings(max_examples=150, deadline=None)
@given(
    specifier=specifiers | st.tuples(operators, near).map("".join),
    version=versions | near,
)
def test_specifiers_agree_with_packaging(specifier: str, version: str) -> None:
    try:
        allowed = SpecifierSet(specifier).contains(version, prereleases=True)
    except InvalidSpecifier:
        with pytest.raises(UnreadableVersion):
            specifier_allows(specifier, version)
        return
    assert specifier_allows(specifier, version) is allowed


@settings(max_examples=120, deadline=None)
@given(one=versions | near, other=versions | near)
def test_order_and_equality_agree_with_packaging(one: str, other: str) -> None:
    assert (read_version(one).key < read_version(other).key) is (Theirs(one) < Theirs(other))
    assert is_same_version(one, other) is (Theirs(one) == Theirs(other))


@settings(max_examples=200, deadline=None)
@given(text=st.text("0123456789.!+-_abcdeprvx ", max_size=12))
def test_the_same_texts_are_versions(text: str) -> None:
    try:
        Theirs(text)
    except InvalidVersion:
        with pytest.raises(UnreadableVersion):
            read_version(text)
    else:
        read_version(text)


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
