"""Rules about `training` and `env`, beyond their examples: fixes applied, releases between two that
were read, several targets.
"""

from __future__ import annotations

import pytest

from provision.diagnostics import Severity
from provision.rules import ResolvedSet
from tests.rules.conftest import Ask

TEXT = (
    'gpu: none\npython: "3.11"\npackages: ["transformers[torch]{}"]\ntraining:\n  arguments:\n '
    "   {}\n"
)


def test_a_renamed_argument_keeps_its_value(ask: Ask) -> None:
    judged = ask(TEXT.format(">=5", "evaluation_strategy: epoch  # every epoch"))
    fix = judged.one("TRN001").fix
    assert fix is not None
    (text,) = judged.source.apply_fixes([fix]).values()
    assert "    eval_strategy: epoch  # every epoch\n" in text
    assert ask(text).ids == []


@pytest.mark.parametrize(
    ("bounds", "severity"),
    [
        ("==4.50.3", Severity.INFO),
        ("==4.51.0", None),
        ("==4.51.3", Severity.ERROR),
        (">=4.50", Severity.WARNING),
        (">=4.52", Severity.ERROR),
        ("", Severity.WARNING),
    ],
)
def test_an_argument_by_release(ask: Ask, bounds: str, severity: Severity | None) -> None:
    """evaluation_strategy is in 4.50.3 and not in 4.51.3; it is deprecated from 4.41.2 on."""
    found = [
        one
        for one in ask(TEXT.format(bounds, "evaluation_strategy: epoch")).findings
        if one.id in ("TRN001", "TRN003")
    ]
    assert [one.severity for one in found] == ([severity] if severity else [])


def test_the_attention_of_the_model_is_no_error_and_is_told(ask: Ask) -> None:
    for resolved in (
        None,
        ResolvedSet(
            {"torch": "2.13.0", "transformers": "5.23.0", "accelerate": "1.15.0"}, "3.11", "cpu"
        ),
    ):
        (found,) = ask(TEXT.format("==5.23.0", "attn_implementation: eager"), resolved).findings
        assert (found.id, found.severity) == ("TRN002", Severity.INFO)


def test_an_argument_whose_successor_takes_other_values_has_no_fix(ask: Ask) -> None:
    found = ask(TEXT.format("==5.13.1", "group_by_length: true")).one("TRN001")
    assert found.fix is None
    assert "train_sampling_strategy" in found.help


def test_an_argument_of_tomorrow_is_unknown(ask: Ask) -> None:
    assert ask(TEXT.format(">=5", "quantum_mode: true")).one("TRN002").severity is Severity.UNKNOWN
    assert (
        ask(TEXT.format("==5.13.1", "quantum_mode: true")).one("TRN002").severity is Severity.ERROR
    )
    tomorrow = ResolvedSet(
        {"torch": "2.15.0", "transformers": "99.0", "accelerate": "9.0"}, "3.11", "cpu"
    )
    assert (
        ask(TEXT.format(">=5", "quantum_mode: true"), tomorrow).one("TRN002").severity
        is Severity.UNKNOWN
    )
    assert "TRN001" not in ask(TEXT.format(">=5", "evaluation_strategy: epoch"), tomorrow).ids


def test_a_field_that_is_not_given_is_offered(ask: Ask) -> None:
    judged = ask(
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining:\n  '
        "arguments: {bf16: true}\n"
    )
    found = judged.one("TRN004")
    assert found.severity is Severity.WARNING
    assert found.fix is not None
    (text,) = judged.source.apply_fixes([found.fix]).values()
    assert ask(text).one("TRN004").severity is Severity.INFO


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("save_strategy: no", []),
        ("save_strategy: best", []),
        ("save_strategy: epoch", ["TRN005"]),
        ("eval_strategy: steps, save_steps: 500, eval_steps: 250", []),
        ("eval_strategy: steps, save_steps: 500, eval_steps: 300", ["TRN005"]),
        ("eval_strategy: steps, save_steps: 0.5, eval_steps: 0.25", []),
        ("eval_strategy: steps, logging_steps: 300", ["TRN005"]),
    ],
)
def test_the_best_model(ask: Ask, said: str, found: list[str]) -> None:
    text = (
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
        f"{{arguments: {{load_best_model_at_end: true, {said}}}}}\n"
    )
    assert ask(text).ids == found


def test_what_is_offered_for_the_best_model_mends_it(ask: Ask) -> None:
    for said in (
        "",
        ", eval_strategy: epoch",
        ", eval_strategy: epoch, save_strategy: steps",
        ", eval_strategy: no, save_strategy: epoch",
    ):
        judged = ask(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            f"{{arguments: {{load_best_model_at_end: true{said}}}}}\n"
        )
        fix = judged.one("TRN005").fix
        assert fix is not None
        (text,) = judged.source.apply_fixes([fix]).values()
        assert ask(text).ids == []


@pytest.mark.parametrize(("count", "found"), [(1, []), (2, ["TRN006"])])
def test_cards_without_a_strategy(ask: Ask, count: int, found: list[str]) -> None:
    assert (
        ask(f'gpu: L4:{count}\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n').ids == found
    )


def test_the_strategy_that_is_offered_is_written_where_it_belongs(ask: Ask) -> None:
    for more in ("", "training: {precision: bf16}\n", "training: {strategy: none}\n"):
        judged = ask(f'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n{more}')
        fix = judged.one("TRN006").fix
        assert fix is not None
        (text,) = judged.source.apply_fixes([fix]).values()
        assert ask(text).ids == []


@pytest.mark.parametrize(
    ("torch", "severity"), [("2.0.1", Severity.ERROR), ("2.1.2", Severity.WARNING), ("2.2.0", None)]
)
def test_torch_for_fsdp(ask: Ask, torch: str, severity: Severity | None) -> None:
    text = (
        f'gpu: L4:2\npython: "3.11"\npackages: [torch=={torch}, accelerate, '
        f'"numpy<2"]\ntraining: {{strategy: fsdp}}\n'
    )
    assert [one.severity for one in ask(text).of("TRN009")] == ([severity] if severity else [])


def test_deepspeed_through_an_extra(ask: Ask) -> None:
    text = (
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[deepspeed]>=5"]\ntraining: '
        "{strategy: deepspeed-zero2}\n"
    )
    assert "TRN009" not in ask(text).ids


def test_a_method_with_packages_that_are_not_known_is_judged_when_resolved(ask: Ask) -> None:
    text = (
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5", our-tools]\ntraining: '
        "{method: qlora}\n"
    )
    assert "TRN011" not in ask(text).ids
    resolved = ResolvedSet(
        {
            "torch": "2.13.0",
            "transformers": "5.13.1",
            "accelerate": "1.15.0",
            "peft": "0.20.0",
            "our-tools": "1.0",
        },
        "3.11",
        "cu130",
    )
    assert [one.severity for one in ask(text, resolved).of("TRN011")] == [Severity.ERROR]


@pytest.mark.parametrize(("release", "found"), [("4.49.0", False), ("4.50.3", True)])
def test_an_optimizer_by_release(ask: Ask, release: str, found: bool) -> None:
    text = (
        f'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]=={release}"]\ntraining: '
        f"{{optimizer: adamw_hf}}\n"
    )
    assert ("TRN013" in ask(text).ids) is found


@pytest.mark.parametrize(
    ("value", "severity"),
    [
        ('""', Severity.ERROR),
        ('"-1"', Severity.ERROR),
        ('"0"', Severity.WARNING),
        ('"0,-1,1"', Severity.WARNING),
        ('"0,1"', Severity.INFO),
        ('"GPU-1,GPU-2"', Severity.INFO),
    ],
)
def test_visible_devices_beside_two_cards(ask: Ask, value: str, severity: Severity) -> None:
    text = (
        f'gpu: L4:2\npython: "3.11"\npackages: [torch]\ntraining: {{strategy: ddp}}\nenv: '
        f"{{CUDA_VISIBLE_DEVICES: {value}}}\n"
    )
    assert ask(text).one("ENV002").severity is severity


def test_variables_are_said_once_and_not_again_of_the_resolved_set(ask: Ask) -> None:
    text = 'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {LOCAL_RANK: "0"}\n'
    assert ask(text).ids == ["ENV001"]
    assert ask(text, ResolvedSet({"torch": "2.13.0"}, "3.11", "cu130")).ids == []


@pytest.mark.parametrize(
    ("training", "said"),
    [
        (
            "{arguments: {bf16: true, fp16: true}}",
            [("error", "remove both, and set `precision: bf16`")],
        ),
        (
            "{precision: fp16, arguments: {bf16: true, fp16: true}}",
            [("error", "remove both, and keep `precision: fp16`")],
        ),
        (
            "{precision: bf16, arguments: {fp16: true}}",
            [("error", "remove fp16, or set `precision: fp16` instead")],
        ),
        (
            "{framework: torch, precision: bf16, arguments: {fp16: true}}",
            [("warning", "remove fp16, or set `precision: fp16` instead")],
        ),
        ("{precision: fp16, arguments: {tf32: true}}", []),
        (
            "{precision: fp32, arguments: {tf32: true}}",
            [("warning", "set `precision: tf32`, and remove tf32")],
        ),
        (
            "{arguments: {per_device_train_batch_size: 8}}",
            [("info", "set `batch_size: 8`, and remove per_device_train_batch_size")],
        ),
    ],
)
def test_arguments_beside_precision_and_batch_size(
    training: str, said: list[tuple[str, str]], ask: Ask
) -> None:
    found = ask(
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]==5.13.1"]\ntraining: '
        f"{training}\n"
    ).of("TRN004")
    assert [(one.severity.value, one.help) for one in found] == said


@pytest.mark.parametrize(
    ("more", "argument", "severity"),
    [
        ("", "predict_with_generate: true", Severity.WARNING),
        ("", "packing: true", Severity.WARNING),
        (", trl", "packing: true", None),
        (", trl", "beta: 0.1", None),
        (", unsloth", "max_prompt_length: 100", None),
        (", trl", "num_train_epoch: 3", Severity.WARNING),
        ("", "num_train_epoch: 3", Severity.ERROR),
    ],
)
def test_arguments_of_a_subclass(
    more: str, argument: str, severity: Severity | None, ask: Ask
) -> None:
    found = ask(
        'gpu: none\npython: "3.11"\npackages: '
        f'["transformers[torch]==5.13.1"{more}]\ntraining: {{arguments: {{{argument}}}}}\n'
    ).of("TRN002")
    assert [one.severity for one in found] == ([severity] if severity else [])
