"""What `load_best_model_at_end` needs of the other arguments of TrainingArguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

EVALUATION_KEYS = ("eval_strategy", "evaluation_strategy")
WHY = (
    "TrainingArguments raises an error: the best checkpoint must have been both evaluated and "
    "saved."
)
_STEPS = 500
"""Default of save_steps and logging_steps; eval_steps defaults to logging_steps (training_args.py
of 4.57.6 and 5.23.0).
"""


class BestModelMismatch(NamedTuple):
    """Why TrainingArguments refuses its arguments, and the argument to set with its value."""

    message: str
    field: str
    value: Any


def find_best_model_mismatch(arguments: Mapping[str, Any]) -> BestModelMismatch | None:
    """Return what `load_best_model_at_end` lacks; None if it is not set or nothing is missing."""
    if arguments.get("load_best_model_at_end") is not True:
        return None
    keys = [name for name in EVALUATION_KEYS if name in arguments]
    evaluation = str(arguments[keys[0]]) if keys else "no"
    saving = str(arguments.get("save_strategy", "steps"))
    save = arguments.get("save_steps", _STEPS)
    evaluate = arguments.get("eval_steps", arguments.get("logging_steps", _STEPS))
    if saving not in ("best", evaluation):
        message = (
            "`load_best_model_at_end` needs the same strategy for saving and for evaluation, "
            f"but save_strategy is {saving} and eval_strategy is {evaluation}"
        )
        if evaluation == "no":
            return BestModelMismatch(message, "eval_strategy", saving)
        return BestModelMismatch(message, "save_strategy", evaluation)
    if saving == "steps" and _is_mismatch(save, evaluate):
        message = f"save_steps: {save} is not a multiple of eval_steps: {evaluate}"
        return BestModelMismatch(message, "save_steps", -(-save // evaluate) * evaluate)
    return None


def _is_mismatch(save: Any, evaluate: Any) -> bool:
    """Return whether both are integers and the first is not a multiple of the second."""
    if type(save) is not int or type(evaluate) is not int:
        return False
    return evaluate > 0 and save % evaluate != 0
