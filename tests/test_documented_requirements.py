"""Every requirement, practice, error and note of the documents that this program answers to is answered by something that exists, or says why not."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from provision.assets import builtin, builtin_names
from provision.facts.parts import symptoms
from provision.probe.checks import CHECKS
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
    return {one.id for one in (*RULES, *FINDINGS, *CHECKS, *symptoms())} | {f"builtin:{name}" for name in builtin_names()}


def unknown(entries: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """The ids that nothing has, each with the text that names it."""
    names = known()
    return [f"{name}: {entry['text']}" for _, entry in entries for name in entry.get("answered_by", ()) if name not in names]


def test_every_document_is_here() -> None:
    assert tuple(document["document"] for document in DOCUMENTS) == TITLES
    assert all({entry["kind"] for entry in document["says"]} <= set(KINDS) for document in DOCUMENTS)


def test_every_id_exists() -> None:
    assert unknown(ENTRIES) == []


@pytest.mark.parametrize("name", ["PKG999", "no-such-symptom", "P2", "trainer-needs-accelerate", "builtin:none", ""])
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


@pytest.mark.parametrize("profile", ["huggingface-trainer", "huggingface-cuda", "peft-qlora", "deepspeed"])
def test_a_profile_asks_for_the_floors_that_it_answers_for(profile: str) -> None:
    asked = _asked(profile)
    wanted = dict(match.groups() for entry in _of(profile) if (match := re.match(r"([a-z][a-z-]*) (\d+(?:\.\d+)*) or newer", entry["text"])))
    assert wanted
    for name, floor in wanted.items():
        release = [int(part) for part in floor.split(".")]
        last = max(place for place, part in enumerate(release) if part)
        below = ".".join(str(part) for part in (*release[:last], release[last] - 1, 999))
        assert not asked[name].specifier.contains(below), f"{name}{asked[name].specifier} lets {below} through, and {floor} is asked for"


def test_the_trainer_profile_answers_for_all_that_trainer_asks_for() -> None:
    floors = {match[1] for entry in _of("huggingface-trainer") if (match := re.match(r"([a-z-]+) \d[\d.]* or newer", entry["text"]))}
    assert floors == {"torch", "accelerate", "datasets", "safetensors", "tokenizers", "huggingface-hub", "numpy", "tqdm"}


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        ("ImportError: accelerate>=1.1.0 is required", "trainer-accelerate"),
        ("RuntimeError: CUDA out of memory", "oom"),
        ("ValueError: metric_for_best_model must be provided", "best-model-metric"),
        ("AssertionError: Cannot run Trainer.evaluate if model is on meta device", "meta-device"),
        ("ImportError: peft>=0.18.0 is required", "peft-version"),
        ("CUDA device not found", "no-cuda-gpus"),
        ("RuntimeError: Expected all tensors on same device", "two-devices"),
        ("ModuleNotFoundError: No module named 'accelerate'", "module-missing"),
        ("RuntimeError: expected m1 and m2 to have the same dtype, but got: float != c10::Half", "two-dtypes"),
        ("Input type (torch.FloatTensor) and weight type (torch.HalfTensor) should be the same", "two-dtypes"),
        ("RuntimeError: Tensor on device meta is not on the expected device cpu!", "meta-device"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'data/train.csv'", "relative-path"),
        ("_pickle.PicklingError: Can't pickle <function <lambda> at 0x7f>: attribute lookup <lambda> on __main__ failed", "worker-pickle"),
        ("RuntimeError: received 0 items of ancdata", "worker-files"),
    ],
)
def test_an_error_that_the_documents_show_has_its_symptom(text: str, identity: str) -> None:
    found = [symptom.id for symptom in symptoms() if re.search(symptom.regex, text)]
    assert found == [identity]
    assert identity in {name for _, entry in ENTRIES if entry["kind"] in ("error", "compatibility") for name in entry.get("answered_by", ())}


@pytest.mark.parametrize("text", ["No such file or directory: '/data/train.csv'", "all tensors are on the same device", "a value that should be the same"])
def test_what_is_no_symptom(text: str) -> None:
    assert [symptom.id for symptom in symptoms() if re.search(symptom.regex, text)] == []


def _asked(profile: str) -> dict[str, Requirement]:
    """What a profile asks for by name, with what it extends."""
    text = yaml.safe_load(builtin(profile).read_text(encoding="utf-8"))
    base = _asked(text["extends"].removeprefix("builtin:")) if "extends" in text else {}
    written = (f"{line['name']}{line['version']}" if isinstance(line, dict) else line for line in text["packages"])
    return {**base, **{requirement.name: requirement for requirement in map(Requirement, written)}}


def _of(profile: str) -> list[dict[str, Any]]:
    return [entry for _, entry in ENTRIES if entry["kind"] == "requirement" and f"builtin:{profile}" in entry.get("answered_by", ())]
