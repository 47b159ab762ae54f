"""Every requirement, practice, error and note of the documents that this program answers to is answered by something that exists, or says why not."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from provision.assets import builtin, builtin_names
from provision.probe.catalogue import CHECKS
from provision.rules import RULES
from provision.source import FINDINGS

DOCUMENTS = yaml.safe_load((Path(__file__).parent / "documented_requirements.yaml").read_text(encoding="utf-8"))
ENTRIES = [(document["document"], entry) for document in DOCUMENTS for entry in document["says"]]
KINDS = ("requirement", "practice", "error", "compatibility")
TITLES = (
    "Why does HuggingFace Trainer() fail on Vertex AI Workbench but function on Colab?",
    "Environment: huggingface_transformers_Training_Environment",
    "Why does model fitting work in Jupyter but not in Colab?",
    "Environment: huggingface_transformers_CUDA",
)


def known() -> set[str]:
    return {one.id for one in (*RULES, *FINDINGS, *CHECKS)} | {f"builtin:{name}" for name in builtin_names()}


def unknown(entries: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """The ids that nothing has, each with the text that names it."""
    names = known()
    return [f"{name}: {entry['text']}" for _, entry in entries for name in entry.get("answered_by", ()) if name not in names]


def test_every_document_is_here() -> None:
    assert tuple(document["document"] for document in DOCUMENTS) == TITLES
    assert all({entry["kind"] for entry in document["says"]} <= set(KINDS) for document in DOCUMENTS)


def test_every_id_exists() -> None:
    assert unknown(ENTRIES) == []


@pytest.mark.parametrize("name", ["PKG999", "P2", "trainer-needs-accelerate", "builtin:none", ""])
def test_an_id_that_nothing_has_is_found(name: str) -> None:
    assert unknown([("made up", {"text": "a thing", "answered_by": ["PKG001", name]})]) == [f"{name}: a thing"]


@pytest.mark.parametrize(("document", "entry"), ENTRIES, ids=lambda value: value["text"][:40] if isinstance(value, dict) else "")
def test_an_entry_is_answered_or_says_why_not(document: str, entry: dict[str, Any]) -> None:
    assert set(entry) in ({"kind", "text", "answered_by"}, {"kind", "text", "not_covered"}), document
    assert entry["text"].strip()
    if "answered_by" in entry:
        assert entry["answered_by"]
        assert len(set(entry["answered_by"])) == len(entry["answered_by"])
    else:
        assert len(entry["not_covered"]) > 20


def test_nothing_is_said_twice_of_one_document() -> None:
    assert [text for text, times in Counter((document, entry["text"]) for document, entry in ENTRIES).items() if times > 1] == []


def test_not_covered_names_no_check_that_does_not_exist() -> None:
    named = {name for _, entry in ENTRIES for name in re.findall(r"\b[A-Z]{1,3}\d{2,3}\b", entry.get("not_covered", ""))}
    assert named
    assert named - known() == set()


def test_the_profile_asks_for_the_floors_that_it_answers_for() -> None:
    asked = {Requirement(line).name: Requirement(line) for line in yaml.safe_load(builtin("huggingface-trainer").read_text())["packages"]}
    wanted = dict(match.groups() for entry in _of_the_profile() if (match := re.match(r"(\w+) (\d+(?:\.\d+)*) or newer", entry["text"])))
    assert set(wanted) == {"torch", "accelerate", "datasets", "safetensors"}
    for name, floor in wanted.items():
        below = f"{Version(floor).major}.{Version(floor).minor - 1}" if Version(floor).minor else f"{Version(floor).major - 1}.99"
        assert not asked[name].specifier.contains(below), f"{name}{asked[name].specifier} lets {below} through, and {floor} is asked for"


def _of_the_profile() -> list[dict[str, Any]]:
    return [entry for _, entry in ENTRIES if entry["kind"] == "requirement" and "builtin:huggingface-trainer" in entry.get("answered_by", ())]
