"""Judges the rehearsal: that two steps go through, that their peak is near the estimate, that it fits, and which change saves most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..checks.rehearsal import ALLOWED_BESIDE, OF_CARD, OF_ESTIMATE, SAME_SIZE, TIMES_ESTIMATE
from ..proofs.declared import STEPS
from ..values import Judgement
from .cases import Case, bad, ok, size, skipped, unknown, warned

_WITHOUT = "tier: quick asks for no rehearsal"


def _steps(case: Case) -> Judgement:
    if (why := case.seen["rehearsal.why"]) is not None:
        if case.seen.get("rehearsal.sharded"):
            return skipped(f"not rehearsed: {why}")
        return skipped(why) if case.expected.training.model is None else replace(unknown(f"not rehearsed: {why}"), fix=_instead(case))
    if case.seen["rehearsal.out_of_memory"] is not None:
        return _ran_out(case)
    return _wrong_size(case) or _wrong_steps(case) or _went_through(case)


def _peak(case: Case) -> Judgement:
    if (early := _not_rehearsed(case)) is not None:
        return early
    peak, estimate = case.seen["rehearsal.peak_bytes"], case.expected.estimate_bytes
    if case.seen["rehearsal.out_of_memory"] is not None:
        return skipped("memory ran out before there was a peak")
    if peak is None or estimate is None:
        return unknown("there is no estimate of this training" if estimate is None else "this system does not tell how much memory was taken")
    logits = case.seen["rehearsal.logits_bytes"]
    said = f"two steps took {size(peak)}; the estimate is {size(estimate)}, and {size(logits)} of logits that it leaves out"
    if peak > TIMES_ESTIMATE.value * (estimate + logits) + ALLOWED_BESIDE:
        cause = "this model, or a library below it, keeps more than a transformer has to"
        return bad(said, estimate, peak, cause, f"reckon with what was measured; {_levers(case)}", TIMES_ESTIMATE)
    if peak < OF_ESTIMATE * estimate:
        return warned(said, estimate, peak, "the estimate is too careful here", "a smaller card may do: reckon with what was measured")
    return ok(said, estimate, peak)


def _fits(case: Case) -> Judgement:
    if (early := _not_rehearsed(case)) is not None:
        return early
    peak, memory = case.seen["rehearsal.peak_bytes"], case.seen["rehearsal.memory_bytes"]
    if memory is None or peak is None:
        return unknown("this system does not tell how much memory there is")
    of = f"of {size(memory)} {'of the card' if case.seen['rehearsal.device'] == 'cuda' else 'of free RAM'}"
    if case.seen["rehearsal.out_of_memory"] is not None:
        return bad(f"the training does not fit: memory ran out at {size(peak)} {of}", memory, peak, "it takes more than there is", _levers(case))
    if peak > OF_CARD.value * memory:
        cause = "a longer batch, or another program, ends in out of memory"
        return bad(f"two steps take {size(peak)} {of}: nothing is left", memory, peak, cause, _levers(case))
    return ok(f"two steps take {size(peak)} {of}", memory, peak)


def _instead(case: Case) -> str:
    match case.seen.get("rehearsal.short_of"):
        case "memory":
            return f"{_levers(case)}; or rehearse at a target with more memory; {_WITHOUT}"
        case "time":
            return f"rehearse at a target with a card or a faster CPU; {_WITHOUT}"
        case _:
            return f"complete what it lacks under training; {_WITHOUT}"


def _not_rehearsed(case: Case) -> Judgement | None:
    return skipped("not rehearsed: S01 says why") if case.seen["rehearsal.why"] is not None else None


def _ran_out(case: Case) -> Judgement:
    peak = case.seen["rehearsal.peak_bytes"]
    at = f" at {size(peak)}" if peak else ""
    observed = case.seen["rehearsal.out_of_memory"]
    return bad(f"memory ran out{at}: {observed}", f"{STEPS} steps", observed, "the declared training takes more memory than there is", _levers(case))


def _wrong_size(case: Case) -> Judgement | None:
    model, built = case.expected.training.model, case.seen["rehearsal.parameters"]
    declared = model.parameters if model else None
    if not declared or abs(built - declared) <= SAME_SIZE.value * declared:
        return None
    cause = "hidden_size and layers of training.model hold another number of parameters"
    said = f"the declared shape has {built / 1e6:.4g} million parameters, {declared / 1e6:.4g} declared"
    return bad(said, declared, built, cause, "correct training.model", SAME_SIZE)


def _wrong_steps(case: Case) -> Judgement | None:
    steps, finite = case.seen["rehearsal.steps"], case.seen["rehearsal.finite"]
    if steps == STEPS and finite:
        return None
    told = f"{steps} of {STEPS} steps were made" if steps != STEPS else "a loss is not a number"
    cause = "the precision overflows at this size, or a step was left out because gradients were not finite"
    return bad(told, STEPS, steps, cause, "use bf16 instead of fp16 where the card has it; compare with precision: fp32")


def _went_through(case: Case) -> Judgement:
    built, seconds = case.seen["rehearsal.parameters"], case.seen["rehearsal.step_s"]
    return ok(f"{STEPS} steps of {built / 1e6:.4g} million parameters ({case.seen['rehearsal.model']}), the last in {seconds:.3g} s", STEPS, STEPS)


def _pace(case: Case) -> Judgement:
    tokens = case.seen["pace.tokens_per_s"]
    if tokens is None:
        return skipped("torch sees no card, so nothing was trained on one")
    precision, count = case.seen["pace.precision"], case.seen["pace.parameters"]
    told = f"{tokens:,.0f} tokens a second with {count / 1e6:.3g} million random parameters in {precision}"
    if not case.seen["pace.finite"]:
        return warned(f"{told}, and a loss is not a number", None, tokens, "the precision overflows, or the card computes wrong", "look at N01, N07 and R02")
    return ok(told, None, tokens)


def _levers(case: Case) -> str:
    if not case.expected.levers:
        return "a smaller batch_size or sequence_length, or a card with more memory"
    first, *more = (f"{_change(lever.change)} saves about {size(lever.saves_bytes)}" for lever in case.expected.levers)
    return "; or ".join([f"largest lever: {first}", *more[:1]])


def _change(change: dict[str, object]) -> str:
    return ", ".join(f"training.{key}: {str(value).lower() if isinstance(value, bool) else value}" for key, value in change.items())


JUDGES: dict[str, Callable[[Case], Judgement]] = {"S01": _steps, "S02": _peak, "S03": _fits, "R09": _pace}
