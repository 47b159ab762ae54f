"""The kinds of place an environment can be made at: each one module that satisfies Target, and one line here."""

from collections.abc import Mapping

from provision.targets.colab import Colab
from provision.targets.local import Local
from provision.targets.target import Place, Refusal, StandIn, Target
from provision.targets.workbench import Workbench

TARGETS: Mapping[str, Target] = {"colab": Colab(), "local": Local(), "workbench": Workbench()}

__all__ = ["TARGETS", "Place", "Refusal", "StandIn", "Target"]
