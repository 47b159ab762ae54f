"""The search for combinations: what it finds no rule objects to, the least change comes first, and what cannot be found is said."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from provision import source
from provision.diagnostics import Severity
from provision.facts import Facts
from provision.rules import Case, judge
from provision.rules.suggest import MOST_TRIED, Suggested, Unwritten, suggest
from provision.spec import Spec
from tests.rules.conftest import Ask, Disk

GOLDEN = Path(__file__).parent.parent / "golden"
Look = Callable[..., Suggested]


@pytest.fixture
def look(ask: Ask, facts: Facts) -> Look:
    def looked(text: str, **options: object) -> Suggested:
        return suggest(ask(text).case.spec, facts, **options)  # type: ignore[arg-type]

    return looked


def written(found: Suggested) -> list[list[tuple[str, str]]]:
    return [[(change.was, change.now) for change in one.changes] for one in found.found]


def errors(spec: Spec, facts: Facts) -> list[str]:
    return [one.id for one in judge(Case(spec, Unwritten(), facts)) if one.severity is Severity.ERROR]


@pytest.mark.parametrize("case", sorted(path.parent.name for path in GOLDEN.glob("*/spec.yaml")))
def test_what_is_suggested_for_any_golden_spec_has_no_error_but_those_that_are_named(case: str, facts: Facts) -> None:
    for document in source.read(GOLDEN / case / "spec.yaml", Disk()):  # type: ignore[arg-type]
        spec, _ = source.validate(document)
        if spec is None:
            continue
        found = suggest(spec, facts)
        standing = {one.id for one in found.in_the_way}
        for one in found.found:
            assert set(errors(one.spec, facts)) <= standing
        assert found.found or found.in_the_way or found.tried <= 2 * MOST_TRIED


def test_a_spec_that_is_right_needs_no_change(look: Look) -> None:
    found = look('gpu: none\npython: "3.11"\npackages: [torch==2.13.*, "transformers[torch]>=5.13"]\n', most=1)
    assert written(found) == [[]]
    assert found.found[0].choice.torch == "2.13.0"


def test_the_least_change_comes_first_then_the_newest(look: Look) -> None:
    found = look('gpu: V100\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.11.0]\n', most=4)
    assert written(found)[0] == [('"13.0"', '"12.6"')]
    assert [len(changes) for changes in written(found)] == sorted(len(changes) for changes in written(found))
    assert [one.choice.torch for one in found.found][1:3] == ["2.12.0", "2.10.0"]
    free = look('gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\n', most=2)
    newest, next_newest = (tuple(int(part) for part in one.choice.torch.split(".")) for one in free.found)
    assert newest > next_newest


def test_what_is_given_up_is_said(look: Look) -> None:
    (one,) = look('gpu: V100\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.11.0]\n', most=1).found
    assert one.gives_up == ("cuda 13.0",)
    (other,) = look('gpu: none\npython: "3.13"\npackages: [torch==2.2.*]\n', most=1).found
    assert other.gives_up == ("torch==2.2.*",)
    tagged = look('gpu: T4\npython: "3.11"\npackages: [torch==2.0.1+cu118]\n', most=1).found[0]
    assert (tagged.gives_up, tagged.choice.torch, tagged.choice.cuda) == ((), "2.0.1", "11.8")


def test_a_precision_that_no_card_has_is_changed_last(look: Look) -> None:
    (one,) = look('gpu: T4\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.9.1]\ntraining: {precision: fp8}\n', most=1).found
    assert (one.spec.training.precision.value, one.gives_up) == ("fp16", ("training in fp8",))


def test_a_pair_of_pins_that_cannot_be_is_solved_by_moving_one(look: Look, facts: Facts) -> None:
    text = 'gpu: none\npython: "3.11"\npackages: [torch==2.2.2, "transformers[torch]==5.13.1"]\n'
    found = look(text, most=2)
    assert all(len(changes) == 1 for changes in written(found))
    assert errors(found.found[0].spec, facts) == []


def test_accelerate_is_added_or_raised_to_the_floor(look: Look) -> None:
    head = 'gpu: none\npython: "3.11"\n'
    assert written(look(head + "packages: [torch, transformers==5.13.1]\n", most=1)) == [[("", "accelerate>=1.1.0")]]
    assert written(look(head + 'packages: [torch, transformers==5.13.1, "accelerate<1"]\n', most=1)) == [[("accelerate<1", "accelerate>=1.1.0")]]
    assert written(look(head + "packages: [torch, transformers==4.29.2, accelerate==0.21.0]\n", most=1)) == [[]]


def test_companions_follow_torch(look: Look) -> None:
    (one,) = look('gpu: none\npython: "3.13"\npackages: [torch==2.2.2, torchvision==0.17.2]\n', most=1).found
    pins = {package.key: package.version for package in one.spec.packages}
    release = one.choice.torch
    assert pins["torch"] == f"=={release}"
    assert pins["torchvision"] != "==0.17.2"


def test_errors_that_no_version_mends_stand_beside_what_is_found(look: Look) -> None:
    found = look('gpu: V100\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.11.0]\npaths: {data: data}\n', most=1)
    assert [one.id for one in found.in_the_way] == ["REF101"]
    assert written(found) == [[('"13.0"', '"12.6"')]]


def test_a_python_that_was_left_open_costs_nothing(look: Look) -> None:
    text = 'gpu: none\npython: "3.14"\npackages: [torch==2.2.*]\n'
    assert written(look(text, most=1))[0][0][0] == "torch==2.2.*"
    (free,) = look(text, most=1, free=frozenset({"python"})).found
    assert (free.choice.torch, free.choice.python, free.gives_up) == ("2.2.2", "3.12", ())


def test_a_search_ends(look: Look) -> None:
    packages = ", ".join(["torch==2.13.0", "sklearn", "nvidia-ml-py3", *(f"p{number}" for number in range(40))])
    began = time.process_time()
    found = look(f'gpu: K80\npython: "3.12"\npackages: [{packages}]\ntraining: {{precision: fp8}}\n')
    assert found.tried <= 2 * MOST_TRIED
    assert time.process_time() - began < 30  # a loop without end, not a matter of speed


def test_a_card_without_a_row_is_no_obstacle(look: Look) -> None:
    assert look('gpu: Z999\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.13.0]\n', most=1).found
