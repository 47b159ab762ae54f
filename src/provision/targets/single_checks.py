"""Refusal of single checks at targets that verify themselves as a whole."""

from __future__ import annotations

from provision.errors import Refused
from provision.targets.context import TargetContext


def refuse_single_checks(context: TargetContext, only: tuple[str, ...]) -> None:
    """Raise Refused if single checks are requested of a target that runs all of them."""
    if only:
        raise Refused(
            "single checks are repeated on this machine only",
            why=f"{context.address} verifies itself as a whole",
            hint="leave --only out",
        )
