"""Judges: pure functions from readings and expectations to a judgement, one for each check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..catalogue import is_applicable
from ..expectations import Expectations
from ..model import Judgement, Need, ObservationLog, ObservedValues, SelectedCheck, Status
from .capabilities import JUDGES as _ABILITIES
from .cards import JUDGES as _CARDS
from .device import JUDGES as _DEVICE
from .driver import JUDGES as _DRIVER
from .environment import JUDGES as _ENVIRONMENT
from .frameworks import JUDGES as _FRAMEWORKS
from .host import JUDGES as _HOST
from .host_context import JUDGES as _SURROUNDINGS
from .job import JUDGES as _JOB
from .judgement import Judge, JudgeInput, unknown
from .launch import JUDGES as _LAUNCHING
from .loaders import JUDGES as _LOADERS
from .multi_gpu import JUDGES as _SEVERAL
from .numerics import JUDGES as _NUMERICS
from .packages import JUDGES as _PACKAGES
from .rehearsal import JUDGES as _REHEARSAL
from .replicas import JUDGES as _REPLICAS
from .symptoms import explain_error
from .torch_build import JUDGES as _TORCH
from .torch_compile import JUDGES as _COMPILE
from .training import JUDGES as _TRAINING

JUDGES: dict[str, Judge] = {
    **_HOST,
    **_SURROUNDINGS,
    **_DRIVER,
    **_CARDS,
    **_ENVIRONMENT,
    **_PACKAGES,
    **_TORCH,
    **_TRAINING,
    **_FRAMEWORKS,
    **_LAUNCHING,
    **_ABILITIES,
    **_NUMERICS,
    **_DEVICE,
    **_LOADERS,
    **_SEVERAL,
    **_COMPILE,
    **_REHEARSAL,
    **_JOB,
    **_REPLICAS,
}

_NOTHING: tuple[Any, ...] = (None, "", [], {})
"""Values that no check can pass with: a judge puts "nothing" into words."""

_STDLIB_STAGES = frozenset({"host", "driver", "packages", "code", "diagnosis"})


def judge(
    check: SelectedCheck, expected: Expectations, seen: ObservedValues, log: ObservationLog
) -> Judgement:
    """The judgement of one check; a failure of a check that nothing requires is a warning."""
    judgement = _judge(check, expected, seen, log)
    if judgement.status is Status.PASS and judgement.observed in _NOTHING:
        judgement = unknown(f"nothing was observed ({judgement.message})", judgement.expected)
    # A bound that was not applied would only make the report longer.
    if (
        judgement.threshold is None
        and check.check.threshold is not None
        and judgement.status is not Status.SKIP
    ):
        judgement = replace(judgement, threshold=check.check.threshold)
    if judgement.status is Status.FAIL and not check.required:
        judgement = replace(judgement, status=Status.WARN)
    return judgement


def _judge(
    check: SelectedCheck, expected: Expectations, seen: ObservedValues, log: ObservationLog
) -> Judgement:
    if not is_applicable(check.check, expected):
        return Judgement(Status.SKIP, _why_not(check, expected))
    if check.id in log.deaths:
        return _dead(check, log.deaths[check.id])
    if check.id in log.raised:
        return _raised(check, log.raised[check.id])
    if check.id not in log.done:
        return unknown(log.absent.get(check.id) or _earlier(check, log))
    return JUDGES[check.check.id](JudgeInput(expected, seen, check.subject))


def _why_not(check: SelectedCheck, expected: Expectations) -> str:
    relied = expected.training_proof and f"training proof taken from {expected.training_proof}"
    reasons = {
        Need.TORCH: "torch is not among the locked packages",
        Need.FRAMEWORK: "neither jax nor Keras is declared as the framework",
        Need.ARRAYS: "Keras uses the torch backend here",
        Need.KERAS: "Keras is not declared as the framework",
        Need.INSTRUCTIONS: "no locked package needs special processor instructions",
        Need.GPU: "no GPU is declared",
        Need.TRAINING: relied
        or (
            f"no training run is defined for this spec (framework {expected.training.framework}, "
            f"method {expected.training.method})"
        ),
        Need.STRATEGY: relied or "no strategy is declared",
        Need.ADAPTER: relied or f"no adapter is declared (method {expected.training.method})",
        Need.SEVERAL: "at most one GPU is declared",
        Need.COMPILE: "torch_compile is not declared",
        Need.WORKERS: "no DataLoader workers are declared",
        Need.CODE: "no code is declared",
        Need.COMMAND: "no command is declared",
        Need.REPLICAS: "the target is not a job",
    }
    return next(reasons[need] for need in check.check.needs if not expected.meets(need))


def _earlier(check: SelectedCheck, log: ObservationLog) -> str:
    for before in check.check.after:
        if before not in log.done or before in log.raised:
            return f"not checked because {before} did not succeed"
    return "not observed: the stage ended first"


def _dead(check: SelectedCheck, how: str) -> Judgement:
    cause, fix = explain_error(how)
    if check.check.stage == "command" and "did not end" in how:
        cause = "the command was still running at the time limit of the verification"
        fix = "give it less to do, for example with --max_steps, or raise `verify.timeout`"
    if cause is None:
        cause = "code that was imported or run ended the process without raising an error"
        fix = f"read the end of the stage's output, then run `provision verify --only {check.id}`"
    return Judgement(
        Status.FAIL,
        f"the process died during this check: {how}",
        "completes",
        how,
        cause,
        fix,
    )


def _raised(check: SelectedCheck, error: Mapping[str, Any]) -> Judgement:
    text = f"{error['type']}: {error['text']}" if error["text"] else str(error["type"])
    cause, fix = explain_error(text)
    if check.check.stage in _STDLIB_STAGES:
        return unknown(f"could not be observed: {text}")
    if check.check.id == "P06" and cause is None:
        cause = (
            f"{check.subject} cannot be imported in this environment, and the error is not a "
            "known one"
        )
        fix = (
            "import it in this environment, and pass the whole traceback to `provision why`; "
            "if its files were changed, recreate the environment"
        )
    elif cause is None:
        cause = "the error is not a known one"
        fix = (
            "fix the failures listed before it, then run `provision verify --only "
            f"{check.check.id}` and pass its output to `provision why`"
        )
    return Judgement(
        Status.FAIL,
        f"{check.title} raised {text} ({error['place']})",
        "no exception",
        text,
        cause,
        fix,
    )
