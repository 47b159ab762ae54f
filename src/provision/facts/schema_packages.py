"""Row types of the fact tables about packages: declared requirements, wheels and checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from provision.facts.evidence import Evidence
from provision.facts.versions import require_version

Strings = tuple[str, ...]


class ReleaseRange(NamedTuple):
    """The releases `first` to `last` of a package, which declare the same requirements.

    `declared` maps a package, or "package[extra]" if only that extra requires it, to a specifier;
    the package itself checks `floors` at run time.
    """

    package: str
    first: str
    last: str
    python: str
    declared: Mapping[str, str]
    evidence: Evidence
    floors: Mapping[str, str] = {}


class WheelPythons(NamedTuple):
    """The Pythons that the releases `first` to `last` of a package have wheels for.

    `newest` is "" if the wheels run on newer Pythons too.
    """

    package: str
    first: str
    last: str
    oldest: str
    newest: str
    evidence: Evidence

    def supports(self, python: str) -> bool:
        """Return whether there is a wheel for a Python such as "3.12"."""
        return require_version(self.oldest) <= require_version(python) and (
            not self.newest or require_version(python) <= require_version(self.newest)
        )


class FlashAttentionWheels(NamedTuple):
    """The prebuilt wheels of a flash-attn release.

    `pythons` is empty if the Pythons were not read.
    """

    version: str
    torch_first: str
    torch_last: str
    cuda_majors: Strings
    evidence: Evidence
    pythons: Strings = ()


class BitsandbytesBinaries(NamedTuple):
    """The CUDA versions that a bitsandbytes release has a binary for.

    `falls_back`: it uses the binary of a lower minor of the same major if the exact one is missing.
    """

    version: str
    cudas: Strings
    falls_back: bool
    evidence: Evidence


class CudaWheels(NamedTuple):
    """Releases of a package whose wheels on PyPI are built for one CUDA major.

    `effect` is what fails with another one: "import", or "kernels" if only its compiled code does.
    """

    package: str
    first: str
    last: str
    cuda_major: str
    effect: str
    evidence: Evidence


class CapabilityFloor(NamedTuple):
    """The lowest compute capability that a use of a package runs on.

    `cc_max` is the highest one ("" if unlimited), `last` the last release to which the row applies.
    """

    package: str
    use: str
    cc_min: str
    evidence: Evidence
    cc_max: str = ""
    what: str = ""
    last: str = ""


class CudaOnlyUse(NamedTuple):
    """A use of a package that requires an NVIDIA card in older releases.

    It runs on a CPU from release `cpu` on, and on Apple silicon from release `mps` on ("": in no
    release up to `read`).
    """

    package: str
    use: str
    cpu: str
    mps: str
    evidence: Evidence
    read: str = ""


class NumpyFloor(NamedTuple):
    """The first release of a package that was built for NumPy 2; older ones require numpy<2.

    The releases `declared_first` to `declared_last` declare that ("" for none).
    """

    package: str
    first: str
    evidence: Evidence
    declared_first: str = ""
    declared_last: str = ""


class Symptom(NamedTuple):
    """An error message (`regex`, for a search), the layer that reports it, its cause and its fix.

    `rules` detect the cause in a spec, `checks` on a device. `tells` names the content of each
    group of `regex` (see provision.verification.error_lookup). Every match contains one of
    `literals`, which compile_facts.py derives: a text without them is not searched. `order` is
    "general" for causes that follow from a more specific one and "consequence" for the last lines
    of a failure that was printed before. A `fallback` is left out where another symptom explains
    the same line, a `harmless` message does not end a program.
    """

    id: str
    regex: str
    layer: str
    cause: str
    fix: str
    evidence: Evidence
    note: str = ""
    rules: Strings = ()
    checks: Strings = ()
    tells: Strings = ()
    literals: Strings = ()
    order: str = ""
    fallback: bool = False
    harmless: bool = False


class OptimizerState(NamedTuple):
    """Bytes of optimizer state per trained parameter, by name in TrainingArguments(optim=...)."""

    name: str
    bytes: float
    evidence: Evidence


class MemoryOverhead(NamedTuple):
    """Bytes that a process takes on a GPU in addition to the tensors of training."""

    name: str
    bytes: float
    evidence: Evidence


class PrecisionCheck(NamedTuple):
    """A precision that Trainer refuses below capability `cc_min`, before release `first`."""

    package: str
    precision: str
    first: str
    cc_min: str
    evidence: Evidence


class TrainerCall(NamedTuple):
    """A call of Trainer that exists in accelerate from release `accelerate` on.

    Trainer makes it from transformers `first` on. Neither package declares the requirement.
    """

    first: str
    accelerate: str
    what: str
    evidence: Evidence


SAME_RELEASE = "=="
"""The specifier of a requirement on the release of another package with the own version."""


class UndeclaredRequirement(NamedTuple):
    """A requirement of the releases `first` to `last` of a package that they do not declare.

    `first` and `last` are "" without a bound, `specifier` may be SAME_RELEASE, `effect` is the
    symptom, and `severity` the highest severity of a finding.
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
    platforms: Strings
    evidence: Evidence


class KnownDependencies(NamedTuple):
    """A package, or "package[extra]", and its dependencies."""

    package: str
    brings: Strings
    evidence: Evidence


class TransformersUse(NamedTuple):
    """A package that uses transformers without Trainer, and the parts it uses."""

    package: str
    what: str
    evidence: Evidence


class ExclusivePackages(NamedTuple):
    """Packages that install the same module, so that an environment can have only one of them."""

    module: str
    packages: Strings
    evidence: Evidence


class StrategyFloor(NamedTuple):
    """The release of a package that a strategy requires.

    `version` always works; accelerate from its release `since` on refuses releases below
    `refused_below`.
    """

    strategy: str
    package: str
    version: str
    refused_below: str
    since: str
    evidence: Evidence


class Tracker(NamedTuple):
    """A tracker of TrainingArguments(report_to=...), and the packages of which it requires one."""

    tracker: str
    packages: Strings
    evidence: Evidence


class TrainingArgument(NamedTuple):
    """An argument of TrainingArguments in the releases `first` to `last` of transformers.

    `first` and `last` are "" for the oldest and the newest release that was read. `replaced_by`
    replaced it, with the same values if it is `renamed`; `instead` describes the alternative if no
    argument replaced it.
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
    """An argument that only the subclass `of` of TrainingArguments takes."""

    argument: str
    of: str
    evidence: Evidence


class OptimizerName(NamedTuple):
    """A name of TrainingArguments(optim=...) in the releases `first` to `last`.

    `needs` is the package that implements the optimizer.
    """

    optimizer: str
    evidence: Evidence
    first: str = ""
    last: str = ""
    needs: str = ""


class TransformersReleases(NamedTuple):
    """The transformers releases `first` to `last`, which have the same requirements.

    `accelerate` is the floor that Trainer enforces, `torch` the release below which transformers
    disables torch at import; None if unknown. `floors` (at least) and `ceilings` (below) apply to
    packages that transformers checks when it uses them.
    """

    first: str
    last: str
    python: str
    accelerate: str | None
    torch: str | None
    declared: Mapping[str, str]
    evidence: Evidence
    floors: Mapping[str, str] = {}
    ceilings: Mapping[str, str] = {}


class VersionFloor(NamedTuple):
    """The lowest version that works.

    `version` always works, a version below `certain` never does, and between them nothing was read.
    """

    version: str
    certain: str | None
    evidence: Evidence


class ReplacedPackage(NamedTuple):
    """A package name that leads elsewhere.

    `kind` is stub (empty or refuses to install), other (another project), abandoned or hostile. The
    row applies if each package of `beside` can be a release that its specifier admits.
    """

    name: str
    instead: str
    kind: str
    what: str
    evidence: Evidence
    beside: Mapping[str, str] = {}


class KnownModel(NamedTuple):
    """Sizes of a model, by the name of its repository on the Hugging Face Hub."""

    id: str
    parameters: int
    hidden_size: int
    layers: int
    evidence: Evidence


class CondaName(NamedTuple):
    """A package of conda whose name on the package index differs.

    `index_name` is that name, "" for a package that is not a Python package. `sets` is the field of
    a spec that the package stands for (cuda or gpu), "" for none.
    """

    name: str
    index_name: str
    evidence: Evidence
    sets: str = ""
