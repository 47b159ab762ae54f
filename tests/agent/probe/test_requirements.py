"""Our reading of requirements and markers agrees with the packaging library."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.markers import InvalidMarker, Marker, default_environment
from packaging.requirements import InvalidRequirement
from packaging.requirements import Requirement as Theirs

from provision.agent.core.versions import UnreadableVersion
from provision.agent.probe.requirements import (
    evaluate_marker,
    marker_environment,
    parse_requirement,
)

ATOMS = [
    'python_version >= "3.10"',
    'python_version < "3.8"',
    "python_version == '3.11'",
    'python_version != "3.11.*"',
    'python_full_version >= "3.11.4"',
    'sys_platform == "linux"',
    'sys_platform != "win32"',
    '"linux" in sys_platform',
    'sys_platform not in "darwin win32"',
    'platform_machine == "x86_64"',
    'os_name == "nt"',
    'platform_python_implementation == "CPython"',
    'implementation_name == "pypy"',
    'extra == "Test_Suite"',
    '"gpu" == extra',
    'python_version in "3.10 3.11"',
    '"3.10" <= python_version',
    'platform_system == "Darwin"',
    "python_version ~= '3.10'",
    'platform_release > "4"',
    'implementation_version >= "3.11"',
    'platform_version == "x"',
    "os.name == 'posix'",
    "python_implementation == 'CPython'",
]
ENVIRONMENTS = [
    {},
    {
        "python_version": "3.10",
        "python_full_version": "3.10.13",
        "sys_platform": "darwin",
        "platform_machine": "arm64",
        "platform_system": "Darwin",
    },
    {
        "python_version": "3.13",
        "python_full_version": "3.13.0rc1",
        "implementation_version": "3.13.0rc1",
        "os_name": "nt",
        "sys_platform": "win32",
    },
]
joined = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: (
        st.tuples(inner, st.sampled_from([" and ", " or "]), inner).map("".join)
        | inner.map(lambda text: f"({text})")
    ),
    max_leaves=6,
)


def test_marker_values_of_this_interpreter_agree_with_packaging() -> None:
    assert marker_environment() == default_environment()


def test_markers_agree_with_packaging(subtests: pytest.Subtests) -> None:
    for atom, environment, extra in itertools.product(
        ATOMS, ENVIRONMENTS, ["", "test-suite", "gpu"]
    ):
        with subtests.test(f"{atom} {extra}"):
            ours = {**marker_environment(), **environment}
            assert evaluate_marker(atom, ours, extra) is Marker(atom).evaluate(
                {**ours, "extra": extra}
            )


@settings(max_examples=300, deadline=None)
@given(marker=joined, extra=st.sampled_from(["", "gpu"]))
def test_joined_markers_agree_with_packaging(marker: str, extra: str) -> None:
    assert evaluate_marker(marker, marker_environment(), extra) is Marker(marker).evaluate(
        {"extra": extra}
    )


@pytest.mark.parametrize(
    "marker",
    [
        "python_version",
        "python_version >=",
        '(os_name == "nt"',
        'os_name == "nt" and',
        "os_name ! 'nt'",
        "a b c",
        'colour == "red"',
        "os_name = 'nt'",
    ],
)
def test_what_is_no_marker_is_said(marker: str) -> None:
    with pytest.raises(InvalidMarker):
        Marker(marker)
    with pytest.raises(UnreadableVersion):
        evaluate_marker(marker, marker_environment())


@pytest.mark.parametrize("marker", ['"a" == "b"', "os_name ~= 'posix'", "'x' in extras"])
def test_what_is_legal_but_beyond_this_reader_is_said_and_not_guessed(marker: str) -> None:
    Marker(marker)
    with pytest.raises(UnreadableVersion):
        evaluate_marker(marker, marker_environment())


@pytest.mark.parametrize(
    "line",
    [
        "numpy",
        "numpy>=1.2",
        "numpy (>=1.2,<3)",
        "numpy >=1.2 ; python_version >= '3.9'",
        "Foo_Bar.baz[A,b_c]~=2.0",
        "foo[ a , b ] >= 1",
        "foo;extra == 'x'",
        "foo @ https://example.org/foo-1.0.zip",
        "foo[x] @ https://example.org/foo;v=1.zip ; os_name == 'posix'",
        "foo===1.0",
        "foo[]",
        "f",
    ],
)
def test_requirements_agree_with_packaging(line: str) -> None:
    wanted, ours = Theirs(line), parse_requirement(line)
    assert ours.name == wanted.name.lower().replace("_", "-").replace(".", "-")
    assert len(ours.extras) == len(wanted.extras)
    assert set(filter(None, ours.specifier.replace(" ", "").split(","))) == {
        str(clause) for clause in wanted.specifier
    }
    assert ours.by_url is (wanted.url is not None)
    assert bool(ours.marker) is (wanted.marker is not None)
    if wanted.marker is not None:
        assert evaluate_marker(ours.marker, marker_environment()) is wanted.marker.evaluate()


@pytest.mark.parametrize("line", ["", ">=1.0", "-foo", "foo bar", "foo[", "[x]"])
def test_what_is_no_requirement_is_said(line: str) -> None:
    with pytest.raises(InvalidRequirement):
        Theirs(line)
    with pytest.raises(UnreadableVersion):
        parse_requirement(line)
