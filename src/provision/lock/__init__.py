"""Every choice made: one set of versions for every target, with a hash for every file."""

# Not here: `asked` and `resolve`, which need the model of the language. `lock --check` does without
# it where it can.
from provision.lock.model import (
    Lock,
    LockedCondaPackage,
    LockedEnvironment,
    LockedFile,
    LockedPackage,
    TargetChoice,
    digest_of,
    dumps,
    loads,
    with_digest,
)
from provision.lock.text_digest import compute_text_digest

__all__ = [
    "Lock",
    "LockedCondaPackage",
    "LockedEnvironment",
    "LockedFile",
    "LockedPackage",
    "TargetChoice",
    "compute_text_digest",
    "digest_of",
    "dumps",
    "loads",
    "with_digest",
]
