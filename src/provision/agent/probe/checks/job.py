"""Checks of the project's own code, and of the command that it declares."""

from __future__ import annotations

from ..model import Check, Need, Tier

CODE_CHECKS = (
    Check(
        "V01",
        "job",
        "the code is the declared code",
        "code",
        ("code.changed", "code.digest"),
        Tier.INVENTORY,
        (Need.CODE,),
        quiet=True,
    ),
)
COMMAND_CHECKS = (
    Check(
        "V02",
        "job",
        "the declared command",
        "command",
        (
            "code.digest",
            "command.error",
            "command.exit",
            "command.missing",
            "package.*",
            "secret.*",
            "declared_env.*",
            "path.*",
        ),
        Tier.QUICK,
        (Need.COMMAND,),
        quiet=True,
    ),
)
