"""Judges the rehearsal: that steps run, that their peak fits the estimate and the card."""

from __future__ import annotations

from ..byte_sizes import format_bytes
from ..checks.rehearsal import (
    LEAST_OF_ESTIMATE,
    MEMORY_SHARE,
    OVERHEAD_BYTES,
    PARAMETER_DIFFERENCE,
    PEAK_OVER_ESTIMATE,
)
from ..model import Judgement, Threshold
from ..proofs.declared_training import STEPS
from .judgement import JudgeInput, fails, passes, skipped, unknown, warns

_WITHOUT = "use `tier: quick` to skip the rehearsal"


def _steps(given: JudgeInput) -> Judgement:
    if (why := given["rehearsal.why"]) is not None:
        if given.get("rehearsal.sharded"):
            return skipped(f"not rehearsed: {why}")
        return (
            skipped(why)
            if given.expected.training.model is None
            else unknown(f"not rehearsed: {why}", fix=_instead(given))
        )
    if given["rehearsal.out_of_memory"] is not None:
        return _ran_out(given)
    return _wrong_size(given) or _wrong_steps(given) or _went_through(given)


def _peak(given: JudgeInput) -> Judgement:
    if (early := _not_rehearsed(given)) is not None:
        return early
    peak, estimate = given["rehearsal.peak_bytes"], given.expected.estimate_bytes
    if given["rehearsal.out_of_memory"] is not None:
        return skipped("memory ran out before the peak could be measured")
    if peak is None or estimate is None:
        return unknown(
            "there is no estimate for this training run"
            if estimate is None
            else "this system does not report how much memory was used"
        )
    logits = given["rehearsal.logits_bytes"]
    message = (
        f"two training steps used {format_bytes(peak)}; the estimate is {format_bytes(estimate)}, "
        f"plus {format_bytes(logits)} of logits that it does not include"
    )
    bound = Threshold(
        PEAK_OVER_ESTIMATE.value * (estimate + logits) + OVERHEAD_BYTES,
        "bytes",
        f"{PEAK_OVER_ESTIMATE.value:g} {PEAK_OVER_ESTIMATE.unit}: {PEAK_OVER_ESTIMATE.source}",
    )
    if peak > bound.value:
        return fails(
            message,
            estimate,
            peak,
            "this model, or a library it uses, needs more memory than the estimate assumes",
            f"use the measured memory for planning; {_levers(given)}",
            bound,
        )
    if peak < LEAST_OF_ESTIMATE * estimate:
        return warns(
            message,
            estimate,
            peak,
            "the estimate is too high for this training run",
            "plan with the measured memory usage; a smaller card may be enough",
            bound,
        )
    return passes(message, estimate, peak, bound)


def _fits(given: JudgeInput) -> Judgement:
    if (early := _not_rehearsed(given)) is not None:
        return early
    peak, memory = given["rehearsal.peak_bytes"], given["rehearsal.memory_bytes"]
    if memory is None or peak is None:
        return unknown("this system does not report how much memory it has")
    size = format_bytes(memory)
    of = (
        f"of the card's {size}" if given["rehearsal.device"] == "cuda" else f"of {size} of free RAM"
    )
    if given["rehearsal.out_of_memory"] is not None:
        return fails(
            f"the training run does not fit: it ran out of memory at {format_bytes(peak)} {of}",
            memory,
            peak,
            "the training run needs more memory than is available",
            _levers(given),
        )
    if peak > MEMORY_SHARE.value * memory:
        return fails(
            f"two training steps use {format_bytes(peak)} {of}, which leaves too little free "
            "memory",
            memory,
            peak,
            "the training run needs nearly all the memory, so a batch with longer sequences or "
            "another program can exhaust it",
            _levers(given),
        )
    return passes(f"two training steps use {format_bytes(peak)} {of}", memory, peak)


def _instead(given: JudgeInput) -> str:
    match given.get("rehearsal.short_of"):
        case "memory":
            return (
                f"{_levers(given)}; or run the rehearsal on a target with more memory; {_WITHOUT}"
            )
        case "time":
            return f"run the rehearsal on a target with a card or a faster CPU; {_WITHOUT}"
        case _:
            return f"add the missing fields under `training` in the spec; {_WITHOUT}"


def _not_rehearsed(given: JudgeInput) -> Judgement | None:
    return skipped("not rehearsed (see S01)") if given["rehearsal.why"] is not None else None


def _ran_out(given: JudgeInput) -> Judgement:
    peak = given["rehearsal.peak_bytes"]
    at = f" at {format_bytes(peak)}" if peak else ""
    observed = given["rehearsal.out_of_memory"]
    return fails(
        f"training ran out of memory{at}: {observed}",
        f"{STEPS} steps",
        observed,
        "the declared training run needs more memory than is available",
        _levers(given),
    )


def _wrong_size(given: JudgeInput) -> Judgement | None:
    model, built = given.expected.training.model, given["rehearsal.parameters"]
    declared = model.parameters if model else None
    if not declared or abs(built - declared) <= PARAMETER_DIFFERENCE.value * declared:
        return None
    return fails(
        f"`hidden_size` and `layers` result in a model with {built / 1e6:.4g} million parameters, "
        f"but {declared / 1e6:.4g} million are declared "
        f"(tolerance {PARAMETER_DIFFERENCE.value:.0%})",
        f"{declared / 1e6:.4g} million",
        f"{built / 1e6:.4g} million",
        "`training.model.parameters` does not match `hidden_size` and `layers`",
        "correct `training.model`",
    )


def _wrong_steps(given: JudgeInput) -> Judgement | None:
    steps, finite = given["rehearsal.steps"], given["rehearsal.finite"]
    if steps == STEPS and finite:
        return None
    return fails(
        f"only {steps} of {STEPS} steps were run"
        if steps != STEPS
        else "a loss is NaN or infinite",
        f"{STEPS} steps",
        f"{steps} steps",
        "a value overflows in this precision, or a step was skipped because gradients were not "
        "finite",
        "use bf16 instead of fp16 if the card supports it; compare with `precision: fp32`",
    )


def _went_through(given: JudgeInput) -> Judgement:
    built, seconds = given["rehearsal.parameters"], given["rehearsal.step_s"]
    return passes(
        f"{STEPS} training steps of a model with {built / 1e6:.4g} million parameters "
        f"({given['rehearsal.model']}); the last step took {seconds:.3g} s",
        f"{STEPS} steps",
        f"{STEPS} steps",
    )


def _pace(given: JudgeInput) -> Judgement:
    tokens = given["pace.tokens_per_s"]
    if tokens is None:
        return skipped("torch sees no card to train on")
    precision, count = given["pace.precision"], given["pace.parameters"]
    message = (
        f"{tokens:,.0f} tokens per second with {count / 1e6:.3g} million random parameters in "
        f"{precision}"
    )
    if not given["pace.finite"]:
        return warns(
            f"{message}, but a loss is NaN or infinite",
            None,
            tokens,
            "a value overflows in this precision, or the GPU computes incorrect results",
            "see the results of checks N01, N07 and R02",
        )
    return passes(message, None, tokens)


def _levers(given: JudgeInput) -> str:
    if not given.expected.levers:
        return "use a smaller `batch_size` or `sequence_length`, or a card with more memory"
    first, *more = (
        f"{_change(lever.change)} saves about {format_bytes(lever.saves_bytes)}"
        for lever in given.expected.levers
    )
    return "; or ".join([f"largest saving: {first}", *more[:1]])


def _change(change: dict[str, object]) -> str:
    return ", ".join(
        f"training.{key}: {str(value).lower() if isinstance(value, bool) else value}"
        for key, value in change.items()
    )


JUDGES = {
    "S01": _steps,
    "S02": _peak,
    "S03": _fits,
    "R09": _pace,
}
