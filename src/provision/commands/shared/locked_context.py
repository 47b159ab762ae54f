"""Contexts of targets with a current lock, and the expectations of an exported probe."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath
from typing import Any

from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.lock_file import read_lock
from provision.commands.shared.target_plans import get_driver_and_context
from provision.effects.system import Reader
from provision.errors import LockError, Refused
from provision.lock import Lock, digest_of
from provision.lock.inputs import list_changed_inputs
from provision.targets import TargetContext
from provision.verification import expectations_of, probe_digest


def get_locked_context(loaded: LoadedSpec, target: str, reader: Reader) -> TargetContext:
    """Return the context of a target with the current lock.

    Raises:
        LockError: there is no lock that matches.
        Refused: the target cannot be made.
    """
    lock = read_current_lock(loaded, reader)
    kind, context = get_driver_and_context(loaded, lock, target, reader)
    platform = kind.platform or reader.platform()
    if lock.environment(target, platform) is None:
        raise Refused(
            f"the lock holds nothing for {context.address} on {platform}",
            hint=f"add {platform} to `platforms` of the spec, and lock again",
        )
    return context


def read_current_lock(loaded: LoadedSpec, reader: Reader) -> Lock:
    """Return the lock next to a spec; raise LockError if it is missing or does not match."""
    lock = read_lock(loaded, reader)
    again = f"make it with `provision lock {shlex.quote(str(loaded.path))}`"
    if lock is None:
        raise LockError(f"there is no {loaded.lock_path}", hint=again)
    if moved := list_changed_inputs(loaded.spec, lock):
        raise LockError("the spec moved since the lock was made", why="; ".join(moved), hint=again)
    return lock


def build_probe_expectations(context: TargetContext) -> dict[str, Any]:
    """Return the expectations of an exported probe.

    Their prefix is "": the environment is that of the Python which runs it. Their nonce is derived
    from all the rest, so a report can be matched with nothing recorded here.
    """
    target = context.spec.targets[context.target]
    plain = expectations_of(
        context.effective_spec, context.target, context.lock, context.environment, PurePosixPath()
    )
    asked = {
        **plain,
        "python": {**plain["python"], "prefix": ""},
        "shared": getattr(target, "isolation", None) == "system",
    }
    return {
        **asked,
        "nonce": digest_of({"carried": asked, "probe": probe_digest()}).removeprefix("sha256:")[
            :32
        ],
    }
