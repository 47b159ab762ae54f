"""The search for combinations: what it finds no rule objects to, the least change comes first, and
what cannot be found is said.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from provision import source
from provision.diagnostics import Severity
from provision.facts import Facts, flavour_of
from provision.rules import RULES, LintContext, run_rules
from provision.spec import Spec
from provision.suggest.candidates import CandidateSpace
from provision.suggest.search import (
    MAX_TRIED_SPECS,
    EmptySourceText,
    SearchResult,
    find_suggestions,
)
from tests.rules.conftest import Ask, Disk

GOLDEN = Path(__file__).parent.parent / "golden"
CASES = [
    path.parent.name
    for path in sorted(GOLDEN.glob("*/spec.yaml"), key=lambda path: (path.stat().st_size, path))
]
"""From the smallest spec to the largest."""
Look = Callable[..., SearchResult]


@pytest.fixture
def look(ask: Ask, facts: Facts) -> Look:
    def looked(text: str, **options: object) -> SearchResult:
        return find_suggestions(ask(text).case.spec, facts, **options)  # type: ignore[arg-type]

    return looked


def written(found: SearchResult) -> list[list[tuple[str, str]]]:
    return [[(change.was, change.now) for change in one.changes] for one in found.suggestions]


def errors(spec: Spec, facts: Facts) -> list[str]:
    return [
        one.id
        for one in run_rules(LintContext(spec, EmptySourceText(), facts))
        if one.severity is Severity.ERROR
    ]


@pytest.mark.long(after=3)
@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES)
def test_what_is_suggested_for_any_golden_spec_has_no_error_but_those_that_are_named(
    case: str, facts: Facts
) -> None:
    for document in source.read_spec_file(GOLDEN / case / "spec.yaml", Disk()):  # type: ignore[arg-type]
        spec, _ = source.validate_source(document)
        if spec is None:
            continue
        found = find_suggestions(spec, facts)
        standing = {one.id for one in found.in_the_way}
        for one in found.suggestions:
            assert set(errors(one.spec, facts)) <= standing
        assert found.suggestions or found.in_the_way or found.tried <= 2 * MAX_TRIED_SPECS


def test_a_spec_that_is_right_needs_no_change(look: Look) -> None:
    found = look(
        'gpu: none\npython: "3.11"\npackages: [torch==2.13.*, "transformers[torch]>=5.13"]\n',
        most=1,
    )
    assert written(found) == [[]]
    assert found.suggestions[0].candidate.torch == "2.13.0"


def test_a_warning_about_versions_that_a_suggestion_keeps_is_shown(look: Look) -> None:
    spec = 'gpu: none\npython: "3.12"\npackages: [datasets==2.14.4, fsspec==2023.9.2]\n'
    found = look(spec, most=1)
    assert written(found) == [[]]
    (remark,) = found.suggestions[0].remarks
    assert (remark.id, remark.severity) == ("PKG010", Severity.WARNING)


def test_the_least_change_comes_first_then_the_newest(look: Look) -> None:
    found = look('gpu: V100\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.11.0]\n', most=4)
    assert written(found)[0] == [('"13.0"', '"12.6"')]
    assert [len(changes) for changes in written(found)] == sorted(
        len(changes) for changes in written(found)
    )
    assert len(found.suggestions) == 1  # every other change is that one and more
    free = look('gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\n', most=2)
    newest, next_newest = (
        tuple(int(part) for part in one.candidate.torch.split(".")) for one in free.suggestions
    )
    assert newest > next_newest


def test_what_is_given_up_is_said(look: Look) -> None:
    (one,) = look(
        'gpu: V100\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.11.0]\n', most=1
    ).suggestions
    assert one.gives_up == ("cuda 13.0",)
    (other,) = look('gpu: none\npython: "3.13"\npackages: [torch==2.2.*]\n', most=1).suggestions
    assert other.gives_up == ("torch==2.2.*",)
    tagged = look('gpu: T4\npython: "3.11"\npackages: [torch==2.0.1+cu118]\n', most=1).suggestions[
        0
    ]
    assert (tagged.gives_up, tagged.candidate.torch, tagged.candidate.cuda) == ((), "2.0.1", "11.8")


def test_a_precision_that_no_card_has_is_changed_last(look: Look) -> None:
    (one,) = look(
        'gpu: T4\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.9.1]\ntraining: '
        "{precision: fp8}\n",
        most=1,
    ).suggestions
    assert (one.spec.training.precision.value, one.gives_up) == ("fp16", ("training in fp8",))


def test_a_pair_of_pins_that_cannot_be_is_solved_by_moving_one(look: Look, facts: Facts) -> None:
    text = 'gpu: none\npython: "3.11"\npackages: [torch==2.2.2, "transformers[torch]==5.13.1"]\n'
    found = look(text, most=2)
    assert all(len(changes) == 1 for changes in written(found))
    assert errors(found.suggestions[0].spec, facts) == []


def test_accelerate_is_added_or_raised_to_the_floor(look: Look) -> None:
    head = 'gpu: none\npython: "3.11"\n'
    assert written(look(head + "packages: [torch, transformers==5.13.1]\n", most=1)) == [
        [("", "accelerate>=1.3.0,<2")]
    ]
    assert written(
        look(head + 'packages: [torch, transformers==5.13.1, "accelerate<1"]\n', most=1)
    ) == [[("accelerate<1", "accelerate>=1.3.0,<2")]]
    assert written(
        look(head + "packages: [torch, transformers==4.29.2, accelerate==0.21.0]\n", most=1)
    ) == [[]]


HARD = {
    "vllm beside a newer torch": (
        'gpu: L4, python: "3.12", packages: [torch==2.13.0, vllm==0.6.3]',
        {"torch": "==2.4.0", "vllm": "==0.6.3"},
    ),
    "xformers beside a newer torch": (
        'gpu: A100, cuda: "12.6", python: "3.11", packages: [torch==2.7.0, xformers==0.0.28.post3]',
        {"torch": "==2.7.0", "xformers": "==0.0.30"},
    ),
    "a new card and three companions": (
        """gpu: RTX-5090, cuda: "12.4", python: "3.11", packages: [torch==2.5.1,
        torchvision==0.20.1, xformers==0.0.28.post3, bitsandbytes==0.44.1]""",
        {
            "torch": "==2.7.0",
            "torchvision": "==0.22.0",
            "xformers": "==0.0.30",
            "bitsandbytes": "==0.45.5",
        },
    ),
    "a bound that another package declares": (
        """gpu: none, python: "3.12", packages: [transformers==4.56.1, accelerate==1.10.0,
        huggingface-hub==1.0.0]""",
        {"transformers": "==4.56.1", "huggingface-hub": "<1.0,>=0.34.0"},
    ),
}


@pytest.mark.parametrize("name", HARD)
def test_companions_move_to_releases_that_are_known_to_fit(
    look: Look, facts: Facts, name: str
) -> None:
    text, expected = HARD[name]
    found = look(f"{{{text}}}\n", most=3)
    lines = [
        {package.key: package.version for package in one.spec.packages} for one in found.suggestions
    ]
    assert any(expected.items() <= one.items() for one in lines), lines
    for one in found.suggestions:
        assert errors(one.spec, facts) == []


def test_no_package_gets_a_lower_bound_alone(look: Look) -> None:
    for text, _ in HARD.values():
        for one in look(f"{{{text}}}\n", most=3).suggestions:
            for change in one.changes:
                assert ">=" not in change.now or "<" in change.now, change


def test_a_compiler_moves_with_cuda(look: Look) -> None:
    (one,) = look(
        'gpu: B200\ncuda: "12.4"\ncuda_toolkit: "12.4"\npython: "3.12"\npackages: '
        "[torch==2.5.1]\ntargets: {box: {kind: local, manager: conda}}\n",
        most=1,
    ).suggestions
    assert one.spec.cuda_toolkit == one.spec.cuda
    assert ("cuda_toolkit",) in [change.route for change in one.changes]


def test_a_precision_that_the_card_lacks_is_replaced_by_one_that_it_has(look: Look) -> None:
    text = (
        'gpu: T4\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.9.1]\n'
        "training: {precision: bf16}\n"
    )
    (one,) = look(text, most=1).suggestions
    assert (one.spec.training.precision.value, one.gives_up) == ("fp16", ("training in bf16",))
    (wanted,) = look(text, most=1, written=False).suggestions
    assert wanted.spec.training.precision.value == "bf16"


def test_the_nearest_python_comes_first(look: Look) -> None:
    (one,) = look('gpu: none\npython: "3.8"\npackages: [torch==2.13.0]\n', most=1).suggestions
    assert one.spec.python == "3.10"


def test_companions_follow_torch(ask: Ask, facts: Facts) -> None:
    spec = ask(
        'gpu: none\npython: "3.11"\npackages: [torch==2.2.2, torchvision==0.17.2]\n'
    ).case.spec
    variations = CandidateSpace(spec, facts)
    costs = {choice.torch: cost for cost, choice in variations.initial_candidates()}
    assert costs["2.2.2"] == 0
    assert costs["2.2.1"] > 2  # torch and torchvision
    choice = next(
        choice for _, choice in variations.initial_candidates() if choice.torch == "2.9.1"
    )
    assert [package.requirement for package in variations.to_spec(choice).packages] == [
        "torch==2.9.1",
        "torchvision==0.24.1",
    ]


def test_a_torch_newer_than_the_facts_stays(look: Look) -> None:
    assert written(
        look('gpu: L4\ncuda: "13.9"\npython: "3.12"\npackages: [torch==99.0]\n', most=1)
    ) == [[]]


def test_errors_that_no_version_mends_stand_beside_what_is_found(look: Look) -> None:
    found = look(
        'gpu: V100\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.11.0]\npaths: {data: data}\n',
        most=1,
    )
    assert [one.id for one in found.in_the_way] == ["REF101"]
    assert written(found) == [[('"13.0"', '"12.6"')]]


def test_a_python_that_was_left_open_costs_nothing(look: Look) -> None:
    text = 'gpu: none\npython: "3.14"\npackages: [torch==2.2.*]\n'
    assert written(look(text, most=1))[0][0][0] == "torch==2.2.*"
    (free,) = look(text, most=1, free=frozenset({"python"})).suggestions
    assert (free.candidate.torch, free.candidate.python, free.gives_up) == ("2.2.2", "3.12", ())


def test_a_search_ends(look: Look) -> None:
    packages = ", ".join(
        ["torch==2.13.0", "sklearn", "nvidia-ml-py3", *(f"p{number}" for number in range(40))]
    )
    began = time.process_time()
    found = look(
        f'gpu: K80\npython: "3.12"\npackages: [{packages}]\ntraining: {{precision: fp8}}\n'
    )
    assert found.tried <= 2 * MAX_TRIED_SPECS
    assert time.process_time() - began < 30  # a loop without end, not a matter of speed


def test_a_card_without_a_row_is_no_obstacle(look: Look) -> None:
    assert look(
        'gpu: Z999\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.13.0]\n', most=1
    ).suggestions


@pytest.mark.parametrize("release", ["4.57.1", "4.57.6", "4.53.1", "5.13.0", "5.13.1", "4.46.0"])
def test_a_release_between_those_that_were_read_is_kept(look: Look, release: str) -> None:
    """Where nothing is wrong with it, and where something else is."""
    text = (
        f'gpu: none\npython: "3.11"\npackages: [torch==2.6.0, transformers=={release}, '
        "accelerate==1.15.0]\n"
    )
    assert written(look(text, most=1)) == [[]]
    (one,) = look(text.replace("accelerate==1.15.0", "accelerate==0.19.0"), most=1).suggestions
    assert [change.was for change in one.changes] == ["accelerate==0.19.0"]


@pytest.mark.thorough
def test_a_spec_without_errors_comes_back_unchanged(ask: Ask, facts: Facts) -> None:
    """Of every rule's good examples, as far as they have no error."""
    tried = 0
    for rule in RULES:
        for example in rule.good:
            judged = ask(example.spec)
            if example.resolved is None and not any(
                one.severity is Severity.ERROR for one in judged.findings
            ):
                tried += 1
                found = find_suggestions(judged.case.spec, facts, most=1).suggestions
                assert found, example.spec
                assert [
                    change for change in found[0].changes if change.was not in ("", '"auto"')
                ] == [], example.spec
    assert tried > 150


def test_more_than_is_needed_is_not_offered(look: Look) -> None:
    found = look(
        'gpu: V100\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.11.0]\n', most=6
    ).suggestions
    changes = [set(one.changes) for one in found]
    assert not any(one < other for one in changes for other in changes)


def test_another_package_is_moved_rather_than_transformers(look: Look) -> None:
    found = look(
        'gpu: none\npython: "3.12"\npackages: [torch==2.9.1, peft==0.17.1, '
        "transformers==5.0.0, accelerate==1.12.0]\n",
        most=3,
    )
    assert any(
        [change.was for change in one.changes] == ["peft==0.17.1"] for one in found.suggestions
    )


def test_a_package_that_no_version_helps_is_left_out(look: Look) -> None:
    for packages in ("torch==2.9.1", "torch==2.9.1, transformers==4.57.1, accelerate==1.10.0"):
        found = look(
            f'gpu: T4\ncuda: "12.6"\npython: "3.12"\npackages: [{packages}, {{name: '
            f'flash-attn, build: true}}]\ncuda_toolkit: "12.6"\n',
            most=1,
        )
        assert [one.gives_up for one in found.suggestions] == [("the package flash-attn",)]


def test_the_default_build_and_the_usual_python_come_first_where_nothing_is_said(
    look: Look, facts: Facts
) -> None:
    (one,) = look(
        'gpu: L4\npython: "3.15"\npackages: [torch]\n',
        most=1,
        free=frozenset({"python", "cuda"}),
        written=False,
    ).suggestions
    release = facts.torch_release(one.candidate.torch)
    assert release is not None
    assert flavour_of(one.candidate.cuda) == release.default
    assert one.candidate.python == facts.runtimes["2026.07"].minor


@pytest.mark.parametrize(
    "version", ["===odd", "!=2.0.*", ">=3,<2", "==2.9.1,==2.8.0", ">=1" + ",!=1.0" * 200]
)
def test_bounds_that_say_little_or_nothing_end_no_search(look: Look, version: str) -> None:
    found = look(
        f'gpu: L4\ncuda: "12.8"\npython: "3.12"\npackages: [{{name: torch, version: '
        f'"{version}"}}, {{name: transformers, version: "{version}"}}]\n',
        most=1,
    )
    assert found.tried > 0


def test_windows_is_no_reason_to_find_nothing(look: Look) -> None:
    assert look(
        'gpu: RTX-4090\ncuda: "12.8"\npython: "3.12"\npackages: [torch==2.9.1]\nplatforms: '
        "[windows-x86_64]\n",
        most=1,
    ).suggestions
