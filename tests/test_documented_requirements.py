"""Each requirement, practice, error and note of the documents behind this program has a pointer to
what shows it, and every pointer holds.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from provision.agent.probe.checks import CHECKS
from provision.agent.probe.expectations import parse_expectations
from provision.assets import list_builtin_profiles
from provision.facts import load_facts
from provision.facts.lazy_tables import load_symptoms
from provision.rules import RULES, Rule
from provision.verification.error_lookup.symptoms import LookupContext, explain_error
from tests.agent.probe.conftest import document
from tests.agent.probe.rows import Row
from tests.agent.probe.test_judging import ROWS, judge_one
from tests.rules.conftest import judge_text

ROOT = Path(__file__).parents[1]
DOCUMENTS = yaml.load(
    (Path(__file__).parent / "documented_requirements.yaml").read_text(encoding="utf-8"),
    yaml.CSafeLoader,
)
ENTRIES = [entry for source in DOCUMENTS for entry in source["says"]]
POINTERS = [pointer for entry in ENTRIES for pointer in entry.get("shown_by", ())]
FACTS = load_facts()
RULE_OF = {rule.id: rule for rule in RULES}
CHECK_IDS = {check.id for check in CHECKS}
SYMPTOM_IDS = {symptom.id for symptom in load_symptoms()}
TRAINER = "builtin:huggingface-trainer/packages"


def problem_of(pointer: str, folder: Path) -> str:
    """Return why a pointer shows nothing, or "" when it holds; documented_requirements.yaml
    describes the forms.
    """
    name, _, text = pointer.partition(" ")
    identity, _, outcome = name.partition("/")
    if "::" in name:
        return _problem_of_test(name)
    if identity in RULE_OF:
        return _problem_of_example(RULE_OF[identity], outcome, text, folder)
    if identity in CHECK_IDS:
        return _problem_of_row([row for row in ROWS if row.id == identity], outcome, text)
    if identity in SYMPTOM_IDS and outcome == "error":
        return _problem_of_error(identity, text)
    if identity.removeprefix("builtin:") in list_builtin_profiles() and outcome in (
        "packages",
        "requires",
    ):
        return _problem_of_profile(identity, outcome, text, folder)
    return f"{name} is not a rule, a check, a symptom, a profile or a test"


def _problem_of_example(rule: Rule, outcome: str, text: str, folder: Path) -> str:
    examples = [
        example
        for example in {"bad": rule.bad, "good": rule.good}.get(outcome, ())
        if text in example.spec
    ]
    if not examples:
        return f"{rule.id} has no {outcome} example with {text!r}"
    for example in examples:
        ids = judge_text(example.spec, folder, FACTS, example.resolved).ids
        if (rule.id in ids) is not (outcome == "bad"):
            return f"the {outcome} example of {rule.id} with {text!r} gets {ids}"
    return ""


def _problem_of_row(rows: list[Row], status: str, text: str) -> str:
    judgements = [
        judge_one(row.id, parse_expectations(document(**row.changes)), row.seen)
        for row in rows
        if row.status == status
    ]
    if any(
        judgement.status.value == status and text in judgement.message for judgement in judgements
    ):
        return ""
    return (
        f"no row of {rows[0].id} gets {status} with {text!r}: "
        f"{[(judgement.status.value, judgement.message) for judgement in judgements]}"
    )


def _problem_of_error(identity: str, text: str) -> str:
    found = [
        explanation.symptom.id
        for explanation in explain_error(text, load_symptoms(), LookupContext(FACTS))
    ]
    return "" if found[:1] == [identity] else f"{text!r} shows {found}, not {identity} first"


def _problem_of_profile(identity: str, outcome: str, text: str, folder: Path) -> str:
    spec = judge_text(f'extends: {identity}\ngpu: L4\npython: "3.12"\n', folder, FACTS).case.spec
    if outcome == "requires":
        field, _, amount = text.partition(": ")
        found = getattr(spec.requires, field, None)
        return "" if found == amount else f"{identity} requires {field}: {found}"
    for wanted in map(Requirement, text.split()):
        package = spec.package(wanted.name)
        if package is None:
            return f"{identity} does not list {wanted.name}"
        listed = Requirement(package.requirement).specifier
        if any(listed.contains(_version_below(floor.version)) for floor in wanted.specifier):
            return (
                f"{identity} lists {wanted.name}{listed}, which accepts versions below "
                f"{wanted.specifier}"
            )
    return ""


def _version_below(floor: str) -> str:
    """Return a high patch release of the line before `floor`: 1.0.999 for 1.1.0."""
    release = [int(part) for part in floor.split(".")]
    last = max(index for index, part in enumerate(release) if part)
    return ".".join(str(part) for part in (*release[:last], release[last] - 1, 999))


def _problem_of_test(pointer: str) -> str:
    path, _, name = pointer.partition("::")
    if not (ROOT / path).is_file():
        return f"there is no file {path}"
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    tests = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    return "" if name in tests else f"{path} has no test {name}"


def test_each_entry_is_shown(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for entry in ENTRIES:
        with subtests.test(entry["text"]):
            assert bool(entry.get("shown_by")) is not bool(entry.get("not_covered"))
            assert [
                problem
                for pointer in entry.get("shown_by", ())
                if (problem := problem_of(pointer, tmp_path))
            ] == []


@pytest.mark.parametrize(
    ("pointer", "problem"),
    [
        ("PKG999/bad torch", "PKG999/bad is not a rule"),
        ("no-such-symptom/error CUDA out of memory", "is not a rule, a check, a symptom"),
        ("builtin:none/packages torch", "is not a rule, a check, a symptom, a profile"),
        ("", "is not a rule"),
        ("PKG001/bad transformers==1.0", "PKG001 has no bad example with 'transformers==1.0'"),
        ("PKG001/worse transformers", "PKG001 has no worse example"),
        (
            "H05/fail the machine has 99 GiB",
            "no row of H05 gets fail with 'the machine has 99 GiB'",
        ),
        ("H05/warn", "no row of H05 gets warn"),
        ("oom/error KeyError: 3", "shows [], not oom first"),
        (
            "oom/error RuntimeError: No CUDA GPUs are available",
            "shows ['no-cuda-gpus'], not oom first",
        ),
        ("builtin:huggingface-trainer/packages wandb", "does not list wandb"),
        (
            "builtin:huggingface-trainer/packages datasets>=2.16.0",
            "accepts versions below >=2.16.0",
        ),
        ("builtin:huggingface-trainer/requires ram: 32GB", "requires ram: 16GB"),
        ("tests/lock/test_lock.py::test_that_was_renamed", "has no test test_that_was_renamed"),
        ("tests/lock/test_gone.py::test_lock", "there is no file tests/lock/test_gone.py"),
    ],
)
def test_a_pointer_that_shows_nothing_is_reported(
    pointer: str, problem: str, tmp_path: Path
) -> None:
    assert problem in problem_of(pointer, tmp_path)


def test_a_rule_that_finds_nothing_or_too_much_is_reported(tmp_path: Path) -> None:
    rule = RULE_OF["PKG001"]
    swapped = rule._replace(bad=rule.good, good=rule.bad)
    assert "gets []" in _problem_of_example(swapped, "bad", "transformers[torch]>=5.13", tmp_path)
    assert "gets ['PKG001']" in _problem_of_example(swapped, "good", "accelerate<1", tmp_path)


def test_a_check_with_another_result_is_reported() -> None:
    (row,) = (row for row in ROWS if row.id == "H05" and row.says == "the machine has only 13 GiB")
    changed = replace(row, seen={**row.seen, "host.ram_bytes": 64 * 1024**3})
    assert "no row of H05 gets fail" in _problem_of_row(
        [changed], "fail", "the machine has only 13 GiB"
    )


def test_every_documented_floor_is_a_floor_of_a_profile(subtests: pytest.Subtests) -> None:
    for entry in ENTRIES:
        floor = re.match(r"([a-z][a-z-]*) (\d+(?:\.\d+)*) or newer", entry["text"])
        if floor is None or "not_covered" in entry:
            continue
        with subtests.test(entry["text"]):
            words = [
                word
                for pointer in entry["shown_by"]
                for word in pointer.split()[1:]
                if "/packages " in pointer
            ]
            assert f"{floor[1]}>={floor[2]}" in words


def test_every_floor_of_the_trainer_profile_is_documented(tmp_path: Path) -> None:
    spec = judge_text(
        f'extends: {TRAINER.partition("/")[0]}\ngpu: none\npython: "3.12"\n', tmp_path, FACTS
    ).case.spec
    words = [
        word for pointer in POINTERS if pointer.startswith(TRAINER) for word in pointer.split()[1:]
    ]
    assert {package.key for package in spec.packages} == {Requirement(word).name for word in words}


def test_reasons_name_only_checks_and_rules_that_exist() -> None:
    named = {
        name
        for entry in ENTRIES
        for name in re.findall(r"\b[A-Z]{1,3}\d{2,3}\b", entry.get("not_covered", ""))
    }
    assert named
    assert named <= CHECK_IDS | set(RULE_OF)
