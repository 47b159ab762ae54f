"""The rows of the fact tables about packages: what releases declare, what they are built for, what
they check themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from provision.facts.schema_torch import Evidence
from provision.facts.versions import require_version


class ReleaseRange(NamedTuple):
    """A run of releases, `first` to `last`, that declare the same.

    `declared` maps a package, or "package[extra]" when only that extra asks for it, to a
    specifier; `floors` are checked inside the package itself.
    """

    package: str
    first: str
    last: str
    python: str
    declared: Mapping[str, str]
    evidence: Evidence
    floors: Mapping[str, str] = {}


class WheelPythons(NamedTuple):
    """The Pythons that the releases `first` to `last` of a package have wheels for; `newest` is ""
    where those run on newer Pythons too.
    """

    package: str
    first: str
    last: str
    oldest: str
    newest: str
    evidence: Evidence

    def supports(self, python: str) -> bool:
        """Tell whether there is a wheel for a Python such as "3.12"."""
        return require_version(self.oldest) <= require_version(python) and (
            not self.newest or require_version(python) <= require_version(self.newest)
        )


class DeclaredRequirement(NamedTuple):
    """What a release declares about another package: the specifier ("" for any version), and where
    that is known from.
    """

    specifier: str
    evidence: Evidence


class FlashAttentionWheels(NamedTuple):
    """The ready-made wheels of a flash-attn release: torch minors, CUDA majors, Pythons (empty: not
    read).
    """

    version: str
    torch_first: str
    torch_last: str
    cuda_majors: tuple[str, ...]
    evidence: Evidence
    pythons: tuple[str, ...] = ()


class BitsandbytesBinaries(NamedTuple):
    """The CUDA versions whose binary a bitsandbytes release carries; whether it falls back to a
    lower minor of the same major.
    """

    version: str
    cudas: tuple[str, ...]
    falls_back: bool
    evidence: Evidence


class CudaWheels(NamedTuple):
    """The releases `first` to `last` of a package, whose wheels on PyPI are compiled for one CUDA
    major: "12".
    """

    package: str
    first: str
    last: str
    cuda_major: str
    evidence: Evidence


class CapabilityFloor(NamedTuple):
    """The least compute capability that a use of a package runs on; `cc_max` is the newest where
    there is one, `last` the last release it holds for.
    """

    package: str
    use: str
    cc_min: str
    evidence: Evidence
    cc_max: str = ""
    what: str = ""
    last: str = ""


class CudaOnlyUse(NamedTuple):
    """A use of a package that needs an NVIDIA card before release `cpu` on a CPU, `mps` on Apple
    silicon ("": in all releases up to `read`).
    """

    package: str
    use: str
    cpu: str
    mps: str
    evidence: Evidence
    read: str = ""


class SourceOnlyPackage(NamedTuple):
    """A package that comes as source alone, up to the release `last`, and what its build needs:
    packages, and nvcc.
    """

    package: str
    last: str
    needs: tuple[str, ...]
    evidence: Evidence
    note: str = ""

    @property
    def packages(self) -> tuple[str, ...]:
        """What its build needs of Python packages."""
        return tuple(name for name in self.needs if name != "nvcc")


class NumpyFloor(NamedTuple):
    """The first release of a package that was built for NumPy 2; older ones need numpy<2, which
    `declared_first` to `declared_last` declare ("" for none).
    """

    package: str
    first: str
    evidence: Evidence
    declared_first: str = ""
    declared_last: str = ""


class Constraint(NamedTuple):
    """What a package needs, in words: whom it applies to, what it requires, what one sees
    otherwise.
    """

    key: str
    applies_to: str
    requires: str
    severity: str
    symptom: str
    evidence: Evidence
    note: str = ""


class Symptom(NamedTuple):
    """The text of an error (`regex`, to search for), the layer it comes from, its cause and what
    helps.

    `rules` find the cause in a spec, `checks` on a device. `tells` names what each group of
    `regex` holds (provision.verification.told).
    """

    id: str
    regex: str
    layer: str
    cause: str
    fix: str
    evidence: Evidence
    note: str = ""
    rules: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    tells: tuple[str, ...] = ()


class OptimizerState(NamedTuple):
    """Bytes of optimizer state for each trained parameter, by the name that
    TrainingArguments(optim=...) takes.
    """

    name: str
    bytes: float
    evidence: Evidence


class MemoryOverhead(NamedTuple):
    """Bytes that a process takes on a GPU beside the tensors of training."""

    name: str
    bytes: float
    evidence: Evidence


class PrecisionCheck(NamedTuple):
    """Before release `first` of a package, Trainer refuses a precision on cards below capability
    `cc_min`.
    """

    package: str
    precision: str
    first: str
    cc_min: str
    evidence: Evidence


class TrainerCall(NamedTuple):
    """From release `first` of transformers on, Trainer makes a call that accelerate has from
    release `accelerate` on, which neither of them declares.
    """

    first: str
    accelerate: str
    what: str
    evidence: Evidence


class UndeclaredRequirement(NamedTuple):
    """What the releases `first` to `last` of a package ("" for any older, any newer) need of
    another without declaring it.

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


class PlatformWheels(NamedTuple):
    """A package that has wheels for some platforms only."""

    package: str
    platforms: tuple[str, ...]
    evidence: Evidence


class KnownDependencies(NamedTuple):
    """A package, or "package[extra]", and those that it depends on."""

    package: str
    brings: tuple[str, ...]
    evidence: Evidence


class TransformersUse(NamedTuple):
    """A package that transformers is listed for, in place of Trainer, and what it uses of it."""

    package: str
    what: str
    evidence: Evidence


class ExclusivePackages(NamedTuple):
    """Packages that install the same module, so that an environment takes one of them."""

    module: str
    packages: tuple[str, ...]
    evidence: Evidence


class StrategyFloor(NamedTuple):
    """What a strategy needs of a package: `version` for sure, refused below `refused_below` by
    accelerate from its release `since` on.
    """

    strategy: str
    package: str
    version: str
    refused_below: str
    since: str
    evidence: Evidence


class Tracker(NamedTuple):
    """A tracker as TrainingArguments(report_to=...) takes it, and the packages of which one must be
    there.
    """

    tracker: str
    packages: tuple[str, ...]
    evidence: Evidence


class TrainingArgument(NamedTuple):
    """An argument of TrainingArguments: in all releases of transformers from `first` to `last` ("":
    the oldest, the newest that was read).

    `replaced_by` took its place, with the same values where it is `renamed`; `instead` says what
    to do where nothing did.
    """

    argument: str
    evidence: Evidence
    first: str = ""
    last: str = ""
    deprecated_since: str = ""
    replaced_by: str = ""
    renamed: bool = False
    instead: str = ""


class SubclassArgument(NamedTuple):
    """An argument that TrainingArguments does not take, and `of` its subclasses one does."""

    argument: str
    of: str
    evidence: Evidence


class OptimizerName(NamedTuple):
    """An optimizer as TrainingArguments(optim=...) takes it, in the releases `first` to `last`;
    `needs` is the package that it comes from.
    """

    optimizer: str
    evidence: Evidence
    first: str = ""
    last: str = ""
    needs: str = ""
