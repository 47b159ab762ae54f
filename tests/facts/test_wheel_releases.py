"""Packages without a wheel, by the releases that a specifier admits."""

from __future__ import annotations

import pytest

from provision.facts import load_facts
from provision.facts.wheel_releases import brought_without_wheel, releases_without_wheel

FACTS = load_facts()


@pytest.mark.parametrize(
    ("name", "specifiers", "lacks"),
    [
        ("schedulefree", "==1.4", True),
        ("schedulefree", "<1.4.1", True),
        ("schedulefree", "", False),
        ("schedulefree", "==99", False),
        ("rouge-score", ">=0.1", True),
        ("rouge-score", "", False),
        ("jieba", "", True),
        ("antlr4-python3-runtime", "==4.9.*", True),
        ("antlr4-python3-runtime", ">=4.9", False),
        ("torch", "", False),
    ],
)
def test_admitted_releases(name: str, specifiers: str, lacks: bool) -> None:
    assert (releases_without_wheel(FACTS, name, specifiers) is not None) is lacks


@pytest.mark.parametrize(
    ("name", "specifiers", "brought"),
    [
        ("hydra-core", "==1.3.2", [("antlr4-python3-runtime", True)]),
        ("omegaconf", ">=2.1,<2.4", [("antlr4-python3-runtime", True)]),
        ("wandb", "==0.15.0", [("pathtools", True)]),
        ("wandb", ">=0.18", []),
        ("transformers", "", []),
    ],
)
def test_brought_packages(name: str, specifiers: str, brought: list[tuple[str, bool]]) -> None:
    found = [(row.name, row.is_certain) for row in brought_without_wheel(FACTS, name, specifiers)]
    assert found == brought


def test_an_older_release_that_does_without() -> None:
    (row,) = brought_without_wheel(FACTS, "hydra-core", "")
    newest = FACTS.brought_sources["hydra-core"][-1].releases[-1]
    assert (row.release, row.is_certain, row.compiles) == (newest, False, False)


def test_every_package_of_the_table_is_read() -> None:
    for name, rows in FACTS.brought_sources.items():
        for row in rows:
            assert row.brings in FACTS.wheel_releases, name
            assert row.releases
            assert not set(row.releases) & set(row.others), name
    for row in FACTS.wheel_releases.values():
        assert row.sources, row.package
        assert not set(row.sources) & set(row.wheels), row.package
