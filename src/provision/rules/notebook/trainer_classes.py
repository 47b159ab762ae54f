"""TrainingArguments and its subclasses in calls."""

from __future__ import annotations

from provision.facts import Facts
from provision.rules.notebook.python_code import CellCall

TRAINING_ARGUMENTS = "TrainingArguments"
_PACKAGES = frozenset({"transformers", "trl"})


def is_trainer_class(call: CellCall, facts: Facts) -> bool:
    """Return whether a call creates TrainingArguments or a subclass in the facts.

    The function may be imported from transformers or trl, or defined in the notebook.
    """
    root = call.function.partition(".")[0]
    if root != call.function and root not in _PACKAGES:
        return False
    subclasses = {row.of.partition(" ")[0] for row in facts.subclass_arguments.values()}
    return call.name == TRAINING_ARGUMENTS or call.name in subclasses
