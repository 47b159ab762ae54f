"""Names and versions of installed packages, as metadata folders spell them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from provision.agent.core.installed_packages import audit_packages, find_installed_packages
from provision.agent.core.versions import is_same_version, normalize_name

SPELLINGS = [
    "1.0",
    "1",
    "1.0.0",
    "v1.0",
    "1.0.post1",
    "1.0-1",
    "1.0.rev1",
    "1.0.dev1",
    "1.0rc1",
    "1.0.RC.1",
    "1.0c1",
    "1.0pre1",
    "1.0b2",
    "1.0-beta_2",
]
SPELLINGS += [
    "1.0a",
    "1.0a0",
    "1!1.0",
    "2.13.0+cpu",
    "2.13.0",
    "2.13.0+CPU",
    "2.13.0+cu128",
    "1.0+ubuntu-1",
    "1.0+ubuntu.1",
    "1.0+ubuntu.01",
    "1.0a1.post2.dev3",
]


@given(st.sampled_from(SPELLINGS), st.sampled_from(SPELLINGS))
def test_versions_are_the_same_where_packaging_says_so(one: str, other: str) -> None:
    assert is_same_version(one, other) is (Version(one) == Version(other))


def test_what_is_no_version_is_compared_as_it_is() -> None:
    assert is_same_version("from-git", "from-git")
    assert not is_same_version("from-git", "1.0")


@pytest.mark.parametrize(
    ("name", "normal"), [("Jinja2", "jinja2"), ("ruamel.yaml", "ruamel-yaml"), ("a__b--c", "a-b-c")]
)
def test_names_are_canonical(name: str, normal: str) -> None:
    assert normalize_name(name) == normal


def test_the_first_folder_wins_and_old_metadata_counts(tmp_path: Path) -> None:
    for path in (
        "one/My_Pkg-1.0.dist-info",
        "two/my.pkg-2.0.dist-info",
        "two/old-3.1-py3.11.egg-info",
        "two/plain-4.egg-info",
        "two/no_dash.dist-info",
    ):
        (tmp_path / path).mkdir(parents=True)
    found = find_installed_packages([str(tmp_path / name) for name in ("one", "absent", "two")])
    assert {name: one.version for name, one in found.items()} == {
        "my-pkg": "1.0",
        "old": "3.1",
        "plain": "4",
    }
    assert all(one.flaws for one in audit_packages(found, hashed=True).values()), (
        "without a RECORD nothing can be said of the files"
    )


def test_an_unknown_way_of_hashing_is_a_flaw_and_bytecode_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "a-1.dist-info"
    folder.mkdir()
    (tmp_path / "a.py").write_text("")
    folder.joinpath("RECORD").write_text(
        "a.py,rot13=x,0\n__pycache__/a.pyc,,\na-1.dist-info/RECORD,,\n"
    )
    (one,) = audit_packages(find_installed_packages([str(tmp_path)]), hashed=True).values()
    assert one.files == 1
    assert "cannot be checked" in one.flaws[0]
