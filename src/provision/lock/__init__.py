"""Every choice made: one set of versions for all targets, with a hash for every file.

Importing it does not load the model of the language: `lock --check` does without it if it can.
"""

from provision.lock.conda_package import LockedCondaPackage
from provision.lock.inputs import compute_text_digest
from provision.lock.model import (
    Lock,
    LockedEnvironment,
    LockedFile,
    LockedPackage,
    TargetChoice,
    digest_of,
    dumps,
    loads,
    with_digest,
)

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
