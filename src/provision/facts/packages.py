"""The rows of the fact tables about packages: what releases declare, what they are built for, what they check themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from provision.facts.rows import Evidence


@dataclass(frozen=True, slots=True)
class Run:
    """A run of releases, `first` to `last`, that declare the same.

    `declared` maps a package, or "package[extra]" when only that extra asks for it, to a specifier; `floors` are checked inside the package itself.
    """

    package: str
    first: str
    last: str
    python: str
    declared: Mapping[str, str]
    evidence: Evidence
    floors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Declared:
    """What a release declares about another package: the specifier ("" for any version), and where that is known from."""

    specifier: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class FlashAttentionWheels:
    """The ready-made wheels of a flash-attn release: torch minors, CUDA majors, Pythons (empty: not read)."""

    version: str
    torch_first: str
    torch_last: str
    cuda_majors: tuple[str, ...]
    evidence: Evidence
    pythons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BitsandbytesBinaries:
    """The CUDA versions whose binary a bitsandbytes release carries; whether it falls back to a lower minor of the same major."""

    version: str
    cudas: tuple[str, ...]
    falls_back: bool
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class CapabilityFloor:
    """The least compute capability that a use of a package runs on; `cc_max` is the newest where there is one."""

    package: str
    use: str
    cc_min: str
    evidence: Evidence
    cc_max: str = ""
    what: str = ""


@dataclass(frozen=True, slots=True)
class SourceOnly:
    """A package that comes as source alone, and what its build needs."""

    package: str
    needs: tuple[str, ...]
    evidence: Evidence
    note: str = ""


@dataclass(frozen=True, slots=True)
class NumpyFloor:
    """The first release of a package that was built for NumPy 2; older ones need numpy<2."""

    package: str
    first: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a package needs, in words: whom it applies to, what it requires, what one sees otherwise."""

    key: str
    applies_to: str
    requires: str
    severity: str
    symptom: str
    evidence: Evidence
    note: str = ""


@dataclass(frozen=True, slots=True)
class Symptom:
    """The text of an error (`regex`, to search for), the layer it comes from, its cause and what helps."""

    id: str
    regex: str
    layer: str
    cause: str
    fix: str
    evidence: Evidence
    note: str = ""


@dataclass(frozen=True, slots=True)
class OptimizerState:
    """Bytes of optimizer state for each trained parameter, by the name that TrainingArguments(optim=...) takes."""

    name: str
    bytes: float
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Overhead:
    """Bytes that a process takes on a GPU beside the tensors of training."""

    name: str
    bytes: float
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Undeclared:
    """What the releases `first` to `last` of a package ("" for any older, any newer) need of another without declaring it.

    `effect` is what one sees otherwise, `severity` the gravest a finding may be.
    """

    package: str
    first: str
    last: str
    of: str
    specifier: str
    effect: str
    severity: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Platforms:
    """A package that has wheels for some platforms only."""

    package: str
    platforms: tuple[str, ...]
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class OneOf:
    """Packages that install the same module, so that an environment takes one of them."""

    module: str
    packages: tuple[str, ...]
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class StrategyFloor:
    """What a strategy needs of a package: `version` for sure, refused by the program itself below `refused_below`."""

    strategy: str
    package: str
    version: str
    refused_below: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Tracker:
    """A tracker as TrainingArguments(report_to=...) takes it, and the packages of which one must be there."""

    tracker: str
    packages: tuple[str, ...]
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of TrainingArguments: in all releases of transformers from `first` to `last` ("": the oldest, the newest that was read).

    `replaced_by` took its place, with the same values where it is `renamed`; `instead` says what to do where nothing did.
    """

    argument: str
    evidence: Evidence
    first: str = ""
    last: str = ""
    deprecated_since: str = ""
    replaced_by: str = ""
    renamed: bool = False
    instead: str = ""


@dataclass(frozen=True, slots=True)
class OptimizerName:
    """An optimizer as TrainingArguments(optim=...) takes it, in the releases `first` to `last`; `needs` is the package that it comes from."""

    optimizer: str
    evidence: Evidence
    first: str = ""
    last: str = ""
    needs: str = ""
