"""The kinds of place an environment can be made at: each one module that satisfies Target, and one line here."""

from collections.abc import Mapping

from provision.targets.local import Local
from provision.targets.target import Place, Refusal, Target

TARGETS: Mapping[str, Target] = {"local": Local()}

__all__ = ["TARGETS", "Place", "Refusal", "Target"]
