"""Contexts of targets with a current lock, and the expectations of an exported probe."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.lock_file import require_current_lock
from provision.commands.shared.target_plans import get_driver_and_context
from provision.effects.system import Reader
from provision.errors import Refused
from provision.lock import digest_of
from provision.targets import TargetContext
from provision.verification.device_files import expectations_of, probe_digest


def get_locked_context(loaded: LoadedSpec, target: str, reader: Reader) -> TargetContext:
    """Return the context of a target with the current lock.

    Raises:
        LockError: there is no lock that matches.
        Refused: the target cannot be made.
    """
    lock = require_current_lock(loaded, reader)
    _, context = get_driver_and_context(loaded, lock, target, reader)
    if lock.environment(target, context.platform) is None:
        raise Refused(
            f"the lock has no environment for {context.address} on {context.platform}",
            hint=f"add {context.platform} to `platforms` in the spec, and lock again",
        )
    return context


def build_probe_expectations(context: TargetContext) -> dict[str, Any]:
    """Return the expectations of an exported probe.

    Their prefix is "": the environment is that of the Python which runs it. Their nonce is derived
    from all the rest, so a report can be matched with nothing recorded here.
    """
    target = context.spec.targets[context.target]
    plain = expectations_of(
        context.effective_spec, context.target, context.lock, context.environment, PurePosixPath()
    )
    expectations = {
        **plain,
        "python": {**plain["python"], "prefix": ""},
        "shared": getattr(target, "isolation", None) == "system",
    }
    expectations.pop("command", None)  # the code that it needs is not on that machine
    digest = digest_of({"carried": expectations, "probe": probe_digest()})
    return {**expectations, "nonce": digest.removeprefix("sha256:")[:32]}
