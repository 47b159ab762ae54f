"""The values of the probe: statuses, tiers, checks, readings and judgements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

Environ = Mapping[str, str]
"""The variables of a process."""
JsonObject = dict[str, Any]
Readings = dict[str, Any]
"""Readings by key, each a JSON value."""
ObservedValues = Mapping[str, Any]
"""The readings that a judge may use: all of a verification, or those of one card."""


class Status(str, Enum):
    """Result of a check; `unknown` was not observed, and is not a pass."""

    PASS = "pass"
    FAIL = "fail"
    WARN = "warn"
    SKIP = "skip"
    UNKNOWN = "unknown"


class Verdict(str, Enum):
    """Result of a verification; `simulated`: all checks hold, and something is not real."""

    VERIFIED = "verified"
    SIMULATED = "simulated"
    FAILED = "failed"
    UNVERIFIED = "unverified"
    ERROR = "error"


class Tier(str, Enum):
    """Cost of a verification; a tier also runs the checks of the cheaper tiers."""

    INVENTORY = "inventory"
    QUICK = "quick"
    DEEP = "deep"
    BURN = "burn"


class ReadingClass(str, Enum):
    """Meaning of a reading's difference between two reports."""

    IDENTITY = "identity"
    IDENTITY_WEAK = "identity-weak"
    EXACT = "exact"
    MEASUREMENT = "measurement"
    CONTEXT = "context"
    NOISE = "noise"


class Proof(str, Enum):
    """The training run of the R checks."""

    HF_TRAINER = "hf-trainer"
    TORCH = "torch"
    JAX = "jax"
    KERAS = "keras"
    IMPORTS = "imports"


class Need(str, Enum):
    """A part of the declared environment that a check needs to apply."""

    TORCH = "torch"
    FRAMEWORK = "framework"
    ARRAYS = "arrays"
    KERAS = "keras"
    INSTRUCTIONS = "instructions"
    GPU = "gpu"
    TRAINING = "training"
    STRATEGY = "strategy"
    ADAPTER = "adapter"
    SEVERAL = "several"
    COMPILE = "compile"
    WORKERS = "workers"
    CODE = "code"
    COMMAND = "command"
    REPLICAS = "replicas"


@dataclass(frozen=True, slots=True)
class Threshold:
    """A bound and where it comes from."""

    value: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class Check:
    """One thing a verification asserts.

    `required_by` is "always", "" (never: a failure is a warning) or the route of the expectation
    that makes it required.
    `after` names checks whose observation has to have worked first. `causes` are reading keys, the
    likeliest first; a key ending in ".*" stands for all readings below it. `per_direct_package`
    repeats the check for every direct package. A `quiet` check is left out if it does not apply: a
    dozen lines on cards would be noise in the report of a machine without one.
    """

    id: str
    group: str
    title: str
    stage: str
    causes: tuple[str, ...]
    tier: Tier = Tier.QUICK
    needs: tuple[Need, ...] = ()
    after: tuple[str, ...] = ()
    required_by: str = "always"
    threshold: Threshold | None = None
    per_direct_package: bool = False
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class SelectedCheck:
    """A check of one verification; `id` has the package's name in a repeated check."""

    check: Check
    id: str
    title: str
    subject: str | None
    required: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of a check; `expected` and `observed` are readable JSON values."""

    status: Status
    message: str
    expected: Any = None
    observed: Any = None
    cause: str | None = None
    fix: str | None = None
    threshold: Threshold | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One observed value; its unit is part of the key (`_bytes`, `_s`)."""

    key: str
    value: Any
    reading_class: ReadingClass


@dataclass(slots=True)
class ObservationLog:
    """Result of the observation by check: done, raised an error, stage died, or not observed."""

    done: set[str] = field(default_factory=set)
    raised: dict[str, dict[str, str]] = field(default_factory=dict)
    deaths: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)


class ProbeError(Exception):
    """The verification could not run: bad input or an unwritable folder; exit code 2.

    The text is one line for a person.
    """


class Interrupted(Exception):
    """A signal stopped the probe."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"stopped by signal {signum}")
        self.signum = signum
