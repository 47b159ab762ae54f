"""The kinds of place an environment can be made at: each one module that satisfies Target, and one
line here.
"""

from collections.abc import Mapping

from provision.targets.base import Driver, Refusal, SandboxSources, TargetContext
from provision.targets.colab import ColabDriver
from provision.targets.local.driver import LocalDriver
from provision.targets.workbench import WorkbenchDriver

DRIVERS: Mapping[str, Driver] = {
    "colab": ColabDriver(),
    "local": LocalDriver(),
    "workbench": WorkbenchDriver(),
}

__all__ = ["DRIVERS", "Driver", "Refusal", "SandboxSources", "TargetContext"]
