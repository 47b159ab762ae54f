"""Edits of the packages of a spec: only the entry changes, in the style of its neighbours."""

from __future__ import annotations

import pytest
from packaging.requirements import InvalidRequirement

from provision.source.package_edits import (
    UneditablePackages,
    edit_packages,
    parse_requirement,
)

BLOCK = """\
# top
packages: # of the spec
  - torch==2.13.* # pinned
  # for training
  - transformers[torch]>=5.13
  - {name: numpy, version: ">=1"}

env: {}
"""


def add(text: str, *requirements: str) -> str:
    return edit_packages("spec.yaml", text, tuple(map(parse_requirement, requirements)), ())


def remove(text: str, *names: str) -> str:
    return edit_packages("spec.yaml", text, (), names)


@pytest.mark.parametrize(
    ("text", "requirement", "before", "after"),
    [
        (BLOCK, "peft", '">=1"}\n', '">=1"}\n  - peft\n'),
        (BLOCK, "peft>=0.17,<1", '">=1"}\n', '">=1"}\n  - peft>=0.17,<1\n'),
        (BLOCK, "torch==2.12.*", "torch==2.13.* #", "torch==2.12.* #"),
        (BLOCK, "Torch", "torch==2.13.* #", "torch==2.13.* #"),
        (BLOCK, "transformers[vision]", "[torch]>", "[torch,vision]>"),
        (BLOCK, "numpy<3", '">=1"', '"<3"'),
        (BLOCK, "numpy>=1", '">=1"', '">=1"'),
        (BLOCK, "numpy[extra]", '">=1"}', '">=1", extras: [extra]}'),
        (
            BLOCK,
            "uvloop; sys_platform == 'linux'",
            '">=1"}\n',
            '">=1"}\n  - "uvloop; sys_platform == \'linux\'"\n',
        ),
        ("packages: [a, c]\n", "b", "[a, c]", "[a, b, c]"),
        ("packages: []\n", "b", "[]", "[b]"),
        ("packages: [a, c]\n", "b>=1,<2", "[a, c]", '[a, "b>=1,<2", c]'),
        ('packages:\n- "a"\n- "c"', "b>1", '"a"', '"a"\n- "b>1"'),
        ("packages:\n- 'b'\n- 'c'\n", "a", "- 'b'", "- 'a'\n- 'b'"),
        ("packages:\n- c\n- a\n", "b", "- a\n", "- a\n- b\n"),
        ("packages:\r\n- c\r\n", "b", "- c\r\n", "- c\r\n- b\r\n"),
        ("packages:\n- name: a\n  index: x\n", "a<2", "index: x", 'index: x\n  version: "<2"'),
        ("extends: x.yaml\n", "b", "x.yaml\n", "x.yaml\npackages:\n  - b\n"),
        ("{extends: x.yaml}\n", "b", "x.yaml}", 'x.yaml, packages: ["b"]}'),
    ],
)
def test_only_the_entry_changes(text: str, requirement: str, before: str, after: str) -> None:
    assert before in text
    assert add(text, requirement) == text.replace(before, after, 1)


@pytest.mark.parametrize(
    ("text", "name", "left"),
    [
        (BLOCK, "torch", BLOCK.replace("  - torch==2.13.* # pinned\n", "")),
        (BLOCK, "numpy", BLOCK.replace('  - {name: numpy, version: ">=1"}\n', "")),
        ("packages: [a, b, c]\n", "a", "packages: [b, c]\n"),
        ("packages: [a, b, c]\n", "c", "packages: [a, b]\n"),
        ("packages: [a]\n", "a", "packages: []\n"),
        ("packages: # x\n  - a\nenv: {}\n", "a", "packages: [] # x\nenv: {}\n"),
        ("packages:\n- b\n- a", "a", "packages:\n- b"),
    ],
)
def test_a_removed_entry_takes_its_line(text: str, name: str, left: str) -> None:
    assert remove(text, name) == left


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x: &p [a]\npackages: *p\n", "anchor"),
        ("packages: &p\n- a\nx: *p\n", "anchor"),
        ("packages: a\n", "not a list"),
    ],
)
def test_shared_lists_are_refused(text: str, why: str) -> None:
    with pytest.raises(UneditablePackages, match=why):
        add(text, "b")


def test_a_shared_entry_is_refused() -> None:
    with pytest.raises(UneditablePackages, match="shared by an anchor"):
        add("packages:\n- &a alpha\nx: *a\n", "alpha<2")


@pytest.mark.parametrize("text", ["a @ https://example.org/a.whl", "a b", "", "./x.whl"])
def test_what_is_not_a_requirement_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequirement):
        parse_requirement(text)
