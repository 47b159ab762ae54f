"""The registry is whole: every check has an observer, a judge and published causes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.catalogue import STAGES, group_stages_by_process, select_checks
from provision.agent.probe.checks import CHECKS, device, multi_gpu, numerics, torch_compile
from provision.agent.probe.expectations import parse_expectations
from provision.agent.probe.judging import JUDGES, judge
from provision.agent.probe.model import ObservationLog, ReadingClass, Threshold, Tier
from provision.agent.probe.observing import observers_of
from provision.agent.probe.readings import (
    PUBLISHED_PATTERNS,
    READING_CLASSES,
    class_of_reading,
    published_readings,
)

TORCH = [{"name": "torch", "version": "2.13.0"}]
CARDS: dict[str, Any] = {"packages": TORCH, "gpu": {"type": "L4", "count": 2}}


def test_every_check_has_one_observer_in_its_stage() -> None:
    for stage in STAGES:
        assert set(observers_of(stage.name)) == {
            check.id for check in CHECKS if check.stage == stage.name
        }


def test_every_check_has_one_judge() -> None:
    assert set(JUDGES) == {check.id for check in CHECKS}
    assert len({check.id for check in CHECKS}) == len(CHECKS)


def test_causes_are_published_readings(subtests: pytest.Subtests) -> None:
    for check in CHECKS:
        with subtests.test(check.id):
            assert check.causes
            for key in check.causes:
                sample = key.replace(".*", ".anything.free_bytes")
                assert class_of_reading(sample) is not None, key


def test_a_check_comes_after_checks_of_its_stage_or_of_another_process(
    subtests: pytest.Subtests,
) -> None:
    for check in CHECKS:
        with subtests.test(check.id):
            stages = {stage.name: stage for stage in STAGES}
            by_id = {one.id: one for one in CHECKS}
            place = [one.id for one in CHECKS]
            for before in check.after:
                assert place.index(before) < place.index(check.id)
                other = by_id[before]
                assert (
                    other.stage == check.stage
                    or stages[other.stage].process != stages[check.stage].process
                )


def test_every_threshold_names_its_source() -> None:
    for check in CHECKS:
        assert check.threshold is None or len(check.threshold.source) > 10


PAGE = (Path(__file__).parents[3] / "docs/reference/checks-torch.md").read_text(encoding="utf-8")
BOUNDS = {
    name: value
    for room in (device, multi_gpu, numerics, torch_compile)
    for name, value in vars(room).items()
    if isinstance(value, Threshold)
}


def figures(text: str) -> set[float]:
    return {float(figure) for figure in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", text)}


@pytest.mark.parametrize(
    "check",
    [*device.CHECKS, *multi_gpu.CHECKS, *torch_compile.CHECKS, *numerics.CHECKS],
    ids=lambda check: check.id,
)
def test_the_page_of_these_checks_tells_each_with_its_threshold(check: Any) -> None:
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| {check.id} |")]
    assert check.threshold is None or check.threshold.value in figures(row)
    assert (check.tier is Tier.DEEP) == ("| deep: " in row)


LINE_OF = {
    "FREE_SHARE": "| M01 |",
    "TESTED_SHARE": "| M02 |",
    "COPY_FAILS": "| B01 |",
    "COPY_WARNS": "| B01 |",
    "LINK_FAILS": "| B02 |",
    "LINK_WARNS": "| B02 |",
    "PRODUCT_FAILS": "| F01 |",
    "PRODUCT_WARNS": "| F01 |",
    "CARD_SPREAD": "- **Neighbours.**",
    "BURN_STEADINESS": "| F03 |",
    "BUS_WARNS": "| C03 |",
    "FP32_ERROR": "| N02 |",
    "FP16_ERROR": "| N01 |",
    "BF16_ERROR": "| N01 |",
    "TF32_ERROR": "| N01 |",
    "CONVOLUTION": "| N03 |",
    "CONVOLUTION_TF32": "| N03 |",
    "ATTENTION": "| N04 |",
    "FP8_ERROR": "| N05 |",
    "STEPS_ERROR": "| N09 |",
    "COMPILED_ERROR": "| K02 |",
}
"""How the line of the page begins that gives a bound."""


def test_the_page_gives_every_bound_in_the_line_of_its_check(subtests: pytest.Subtests) -> None:
    assert LINE_OF.keys() == BOUNDS.keys()
    for name, beginning in LINE_OF.items():
        with subtests.test(name):
            (line,) = [line for line in PAGE.splitlines() if line.startswith(beginning)]
            assert BOUNDS[name].value in figures(line)
            assert len(BOUNDS[name].source) > 10


def test_the_longest_pattern_decides_the_class_and_evidence_stays_unpublished() -> None:
    assert class_of_reading("train.run_s") is ReadingClass.NOISE
    assert class_of_reading("train.options") is ReadingClass.CONTEXT
    assert class_of_reading("disk.path.data.free_bytes") is ReadingClass.NOISE
    assert class_of_reading("_packages.installed") is None
    assert class_of_reading("never.heard") is None
    assert [
        one.key for one in published_readings({"os.id": "debian", "_secret": 1, "never.heard": 2})
    ] == ["os.id"]
    assert sum(map(len, PUBLISHED_PATTERNS.values())) == len(READING_CLASSES)


def test_with_a_gpu_every_torch_stage_has_a_process_of_its_own(
    document: Callable[..., dict[str, Any]],
) -> None:
    without = parse_expectations(document())
    with_gpu = parse_expectations(document(gpu={"type": "L4", "count": 1}))
    assert [[stage.name for stage in group] for group in group_stages_by_process(without)] == [
        ["host", "driver", "packages", "code"],
        ["replicas"],
        ["diagnosis"],
        ["torch", "loaders", "training", "imports"],
        ["resume", "launch"],
        ["framework", "framework-training"],
        ["framework-resume"],
        ["device"],
        ["collectives"],
        ["compile"],
        ["rehearsal"],
        ["command"],
    ]
    assert [[stage.name for stage in group] for group in group_stages_by_process(with_gpu)] == [
        ["host", "driver", "packages", "code"],
        ["replicas"],
        ["diagnosis"],
        ["torch"],
        ["loaders"],
        ["training"],
        ["imports"],
        ["resume"],
        ["launch"],
        ["framework"],
        ["framework-training"],
        ["framework-resume"],
        ["device"],
        ["collectives"],
        ["compile"],
        ["rehearsal"],
        ["command"],
    ]


def test_a_tier_asks_its_own_checks_and_the_cheaper_ones(
    document: Callable[..., dict[str, Any]],
) -> None:
    inventory = {one.id for one in select_checks(parse_expectations(document(tier="inventory")))}
    assert {"H01", "P02", "Y01"} <= inventory
    assert not inventory & {"T01", "L01", "R05", "P06:torch"}
    quick, deep, burn = (
        {one.id for one in select_checks(parse_expectations(document(tier=tier, **CARDS)))}
        for tier in ("quick", "deep", "burn")
    )
    assert {"F01", "C02"} <= quick < deep < burn
    assert {
        "F02",
        "C03",
        "N09",
        "L03",
        "K01",
        "K02",
        "W02",
        "X01",
        "X02",
        "S01",
        "S02",
        "S03",
        "R09",
    } <= deep - quick
    assert {"F03"} == burn - deep


def test_a_quiet_check_is_left_out_where_it_does_not_apply_and_skipped_when_it_is_named(
    document: Callable[..., dict[str, Any]],
) -> None:
    bare = parse_expectations(document(packages=TORCH))
    named = select_checks(bare, frozenset({"F01"}))
    assert not {"M01", "F01", "C01", "C02", "K01", "L04"} & {one.id for one in select_checks(bare)}
    assert {"T02", "D03"} <= {one.id for one in select_checks(bare)}
    assert [one.id for one in named] == ["T01", "T02", "F01"]
    assert judge(named[-1], bare, {}, ObservationLog()).message == "no GPU is declared"
    assert not named[-1].required


def test_only_keeps_what_a_check_comes_after(document: Callable[..., dict[str, Any]]) -> None:
    expected = parse_expectations(document(direct=["numpy", "torch"], tier="burn"))
    assert [one.id for one in select_checks(expected, frozenset({"R05"}))] == [
        "R01",
        "R02",
        "R06",
        "R05",
    ]
    assert [one.id for one in select_checks(expected, frozenset({"P06:torch"}))] == ["P06:torch"]
    assert [one.id for one in select_checks(expected, frozenset({"P06"}))] == [
        "P06:numpy",
        "P06:torch",
    ]
    everything = parse_expectations(
        document(
            direct=["numpy"],
            tier="burn",
            training__dataloader_workers=1,
            code={"digest": "sha256:code"},
            replicas={"count": 2},
            command={"argv": ["true"], "exit": 0, "files": [], "stdout": None},
            **CARDS,
        )
    )
    with_jax = parse_expectations(
        document(
            packages=[{"name": "jax", "version": "0.10.2"}],
            training={**document()["training"], "framework": "jax"},
            gpu={"type": "L4", "count": 1},
        )
    )
    with_keras = parse_expectations(
        document(
            packages=[
                {"name": "keras", "version": "3.15.1"},
                {"name": "tensorflow", "version": "2.21.0"},
            ],
            training={
                **document()["training"],
                "framework": "keras",
                "backend": "tensorflow",
                "method": "full",
                "model": None,
                "batch_size": None,
                "sequence_length": None,
                "torch_compile": False,
                "strategy": "none",
                "launcher": "auto",
            },
        )
    )
    documents = (everything, with_jax, with_keras)
    chosen = {one.check.id for expected in documents for one in select_checks(expected)}
    assert chosen == {check.id for check in CHECKS}
