# ruff: noqa: ARG002 - the defaults of `Kind` ignore their arguments
"""Declarations of kinds of target: the model, what the machine provides and refuses."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from provision.diagnostics import Route
from provision.facts import Card, Evidence, Facts, flavour_of
from provision.facts.machines import MachineOffer
from provision.facts.schema_platforms import ColabRuntime, ImageFamily
from provision.field_types import EnvironmentName, ShorthandModel, StrictModel
from provision.kinds.places import Machine, Place
from provision.kinds.settings import (
    LargerMachine,
    MachineRequirements,
    SecretSource,
    StarterField,
    TargetSecrets,
    TargetTraining,
    TargetVariables,
)

Resource = Literal["ram", "shm", "disk"]

NOT_SUPPORTED_YET = "not supported yet"
LINUX = ("linux-x86_64",)
STARTER_REGION = "us-central1"
"""Region of first specs: it has every GPU that Workbench offers without a reservation."""
MAX_GPUS = 16
"""Most GPUs of a machine: a2-megagpu-16g (Compute Engine documentation, GPU machine types)."""


class Gpu(ShorthandModel):
    """The accelerator: `L4`, `A100:2`, `none` for CPU, `mps` for Apple silicon or {type, count}."""

    type: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]*$")
    """Name of the GPU, such as L4, A100-80GB or RTX-4090; `none` for CPU; `mps` for Apple
    silicon.
    """
    count: int = Field(default=1, ge=0, le=MAX_GPUS)
    """Number of GPUs in one machine."""

    @model_validator(mode="before")
    @classmethod
    def _from_short(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        name, colon, count = value.partition(":")
        if colon and not re.fullmatch(r"[1-9][0-9]?", count):
            raise PydanticCustomError(
                "gpu_count", "expected the number of GPUs after the colon, as in A100-80GB:2"
            )
        return {"type": name, "count": int(count or 1)}

    def __str__(self) -> str:
        """Return the short form."""
        return self.type if self.is_none or self.count == 1 else f"{self.type}:{self.count}"

    @property
    def is_none(self) -> bool:
        """True if the work runs on the CPU."""
        return self.type == "none"


class TargetModel(StrictModel):
    """Fields that every kind of target has; they take precedence over the spec's own."""

    if TYPE_CHECKING:
        kind: str  # each kind narrows it to its name
    gpu: Gpu | None = None
    """Replaces the spec's `gpu`."""
    cuda: str | None = Field(default=None, pattern=r"^(auto|none|\d+\.\d+)$")
    """Replaces the spec's `cuda`."""
    paths: dict[EnvironmentName, str] = {}
    """Merged over the spec's `paths`."""
    requires: MachineRequirements | None = None
    """Replaces the spec's `requires`, key by key; requirements for GPUs do not apply to a target
    with gpu: none.
    """
    env: TargetVariables = {}
    """Merged over the spec's `env`; null removes a variable."""
    secrets: TargetSecrets = {}
    """Merged over the spec's `secrets`, source by source; null removes a secret."""
    training: TargetTraining | None = None
    """Merged over the spec's `training`, key by key; null restores a default."""

    @property
    def changes_settings(self) -> bool:
        """True if the target has its own `env`, `secrets` or `training`."""
        return bool(self.env or self.secrets or self.training is not None)


class GpuSettings(NamedTuple):
    """The `gpu` and `cuda` of one or more targets, with the routes they are written at."""

    gpu: Gpu
    gpu_route: Route
    cuda: str
    cuda_route: Route

    @property
    def is_nvidia(self) -> bool:
        """True for a CUDA card."""
        return self.gpu.type not in ("none", "mps")

    @property
    def flavour(self) -> str | None:
        """The torch build family ("cpu", "cu128"), or None if the lock chooses it."""
        if not self.is_nvidia or self.cuda == "none":
            return "cpu"
        return None if self.cuda == "auto" else flavour_of(self.cuda)


class ProvidedVersion(NamedTuple):
    """A version that a machine brings, as "580.82.07", with its provider in words and its source.

    `route` is the field of the spec that chose the provider.
    """

    value: str
    provider: str
    route: Route
    evidence: Evidence


class ProvidedSoftware(NamedTuple):
    """The image or runtime of a machine and the versions that it brings; None if unknown."""

    image: ImageFamily | None = None
    runtime: ColabRuntime | None = None
    driver: ProvidedVersion | None = None
    glibc: ProvidedVersion | None = None
    python: ProvidedVersion | None = None


class TargetFacts(NamedTuple):
    """A target with its facts; None for an unknown fact."""

    name: str
    target: TargetModel
    kind: "Kind"
    gpu_settings: GpuSettings
    card: Card | None
    platforms: tuple[str, ...]
    image: ImageFamily | None = None
    runtime: ColabRuntime | None = None
    driver: ProvidedVersion | None = None
    glibc: ProvidedVersion | None = None
    python: ProvidedVersion | None = None

    @property
    def route(self) -> Route:
        """The route of the target."""
        return ("targets", self.name)

    def route_to(self, *parts: str | int) -> Route:
        """Return the route of a field of the target."""
        return (*self.route, *parts)

    def secret_route(self, name: str) -> Route:
        """Return the route of a secret: in the target's own fields, or else in the spec's."""
        route: Route = ("secrets", name)
        return self.route_to(*route) if name in self.target.secrets else route


class Capacity(NamedTuple):
    """An amount of a resource in bytes, with its provider in words and its source.

    `route` is the field of the spec that chose the provider.
    """

    bytes: float
    provider: str
    route: Route
    evidence: Evidence


class TargetFields(NamedTuple):
    """The fields of a spec, as they hold at one target, that a kind may refuse."""

    packages: frozenset[str]
    """Canonical names of the listed packages."""
    cuda_toolkit: str | None
    secrets: Mapping[str, frozenset[SecretSource]]
    """The sources of every secret by its variable."""
    card_requirements: tuple[str, ...]
    """Keys of `requires` that only a card can meet."""
    index_folders: tuple[str, ...]
    """Names of the used indexes that are folders of this machine (`file://`)."""
    system_packages: bool = False
    code_routes: tuple[Route, ...] = ()
    """The declared fields that need the project's code at the target, or run it there."""
    origin_routes: tuple[Route, ...] = ()
    """The packages from paths and repositories."""
    drive_routes: tuple[Route, ...] = ()
    """The folders of Google Drive under `paths`."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that a target cannot do for a spec: the field, the reason, and the fix.

    `rule` is the id of the lint rule that reports the same; "" for the common rule.
    """

    route: Route
    why: str
    hint: str = ""
    rule: str = ""


class Kind:
    """One kind of target as the language, the lock and the rules see it.

    It is a member of a `Registry`. A kind does no I/O and imports no client library: lint and lock
    load nothing else of it.
    """

    name: ClassVar[str]
    model: ClassVar[type[TargetModel]]
    driver: ClassVar[str] = ""
    """MODULE:CLASS of its driver; "" for a kind that can only be checked and locked."""
    is_this_machine: ClassVar[bool] = False
    """Its targets are made on this machine."""
    rules: ClassVar[tuple[str, ...]] = ()
    """Packages of the rules that concern this kind alone."""
    lock_fields: ClassVar[tuple[str, ...]] = ()
    """The model's own fields that decide packages; a change makes a lock stale."""
    secret_sources: ClassVar[frozenset[SecretSource]] = frozenset()
    reference_hint: ClassVar[str] = ""
    """The edit after which this kind can read a secret."""

    installs_origins: ClassVar[bool] = False
    """Packages from paths and repositories can be installed at its targets."""
    runs_code: ClassVar[bool] = False
    """The project's code is brought to its targets, and `verify.command` is run there."""
    mounts_drive: ClassVar[bool] = False
    """Its machines can mount Google Drive."""
    has_runtimes: ClassVar[bool] = False
    """Its machines bring packages that an environment can extend."""

    def starter_fields(self, gpu: Gpu, facts: Facts, *, conda: bool) -> Mapping[str, StarterField]:
        """Return the fields of a target in a first spec, without its kind.

        Args:
            gpu: the spec's GPU.
            facts: the tables to look up.
            conda: whether the spec has packages of conda.
        """
        return {}

    def lock_platforms(self, declared: Sequence[str]) -> tuple[str, ...]:
        """Return the platforms to lock for.

        Args:
            declared: the spec's `platforms`, as in ["linux-x86_64", "macos-arm64"].
        """
        return LINUX

    def lock_inputs(self, target: TargetModel) -> tuple[str, ...]:
        """Return the values of `lock_fields`."""
        return tuple(getattr(target, field) or "" for field in self.lock_fields)

    def uses_conda(self, target: TargetModel) -> bool:
        """Return whether conda makes the environment."""
        return False

    def base_runtime(self, target: TargetFacts) -> ColabRuntime | None:
        """Return the runtime whose packages the environment extends, None for a clean one."""
        return None

    def preinstalled(self, target: TargetFacts) -> Mapping[str, str] | None:
        """Return the packages that the lock is installed on top of.

        Returns:
            Canonical name to version; None for a clean environment or an unknown runtime.
        """
        return None

    def provides(self, target: Any, route: Route, facts: Facts, *, gpu: bool) -> ProvidedSoftware:
        """Return the software that the machine brings.

        Args:
            target: an instance of `model`.
            route: the target's route in the spec.
            facts: the tables to look up.
            gpu: whether the target has an NVIDIA card.
        """
        return ProvidedSoftware()

    def capacity(self, resource: Resource, target: TargetFacts, facts: Facts) -> Capacity | None:
        """Return how much of a resource the machine has, None if unknown."""
        return None

    def chosen_target(
        self, target: TargetFacts, ram_gib: float | None, facts: Facts
    ) -> TargetModel:
        """Return a target with the machine that `apply` chooses, if the spec leaves it open.

        Args:
            target: the target with its facts.
            ram_gib: the required RAM in GiB, None if the spec requires none.
            facts: the tables to look up.
        """
        return target.target

    def machine_offer(self, target: TargetFacts, facts: Facts) -> MachineOffer | None:
        """Return the machine with its price in the first region, None if it is unknown or free."""
        return None

    def replaced_fields(
        self, before: TargetFacts, after: TargetFacts, facts: Facts
    ) -> tuple[str, ...]:
        """Return the changed fields that no update changes in what was created before."""
        return ()

    def machine_with_ram(
        self, ram_gib: float, target: TargetFacts, facts: Facts
    ) -> LargerMachine | None:
        """Return the smallest machine with the GPUs and so much RAM, None if it is not known."""
        return None

    def measured(self, machine: Machine) -> "Kind":
        """Return this kind with the measurements of this machine, if its targets run here."""
        return self

    def places(self, facts: Facts) -> Iterator[Place]:
        """Yield the places of this kind, each before those that name its runtime or image."""
        return iter(())

    def refusals(
        self, target: TargetFacts, fields: TargetFields, facts: Facts
    ) -> Iterator[Refusal]:
        """Yield everything that the target cannot do, judged from the text of the spec alone.

        `lint`, `plan` and `lock` call this same function. A kind extends it.
        """
        what = f"on a target of kind {self.name} is {NOT_SUPPORTED_YET}"
        for code_route in () if self.runs_code else fields.code_routes:
            yield Refusal(
                code_route,
                f"{'.'.join(map(str, code_route))} {what}",
                "remove it, or move this target to a separate spec",
            )
        hint = "serve its wheel from an index under `indexes`, or move this target to another spec"
        if self.runs_code:
            hint = f"for your own code, set `code: src`, the folder with its modules; or {hint}"
        for origin_route in () if self.installs_origins else fields.origin_routes:
            yield Refusal(origin_route, f"a package from a path or a repository {what}", hint)
        for route in () if self.mounts_drive else fields.drive_routes:
            yield Refusal(
                route,
                f"Google Drive cannot be mounted on a target of kind {self.name}, only on Colab",
                f"set `paths: {{{route[-1]}: /a/folder}}` on target `{target.name}`",
            )
        gpu = target.gpu_settings.gpu
        if target.gpu_settings.is_nvidia:
            return
        for requirement in fields.card_requirements:
            yield Refusal(
                ("requires", requirement),
                f"`requires.{requirement}` does not apply to `gpu: {gpu}`",
                f"remove it (set `{requirement}: null` if a profile sets it), or set `gpu` to "
                "an NVIDIA GPU",
            )


@dataclass(frozen=True)
class Registry:
    """The kinds of target that a spec may name, in the order in which messages list them.

    The first kind owns every recorded part that no other kind claims.
    """

    kinds: tuple[Kind, ...]

    def find(self, name: object) -> Kind | None:
        """Return the kind with a name, None if there is none."""
        return next((kind for kind in self.kinds if kind.name == name), None)

    def kind_of(self, target: TargetModel) -> Kind:
        """Return the declaration of a target's kind."""
        return next(kind for kind in self.kinds if kind.name == target.kind)

    def measured(self, machine: Machine) -> "Registry":
        """Return the kinds with the measurements of this machine."""
        return Registry(tuple(kind.measured(machine) for kind in self.kinds))

    def places(self, facts: Facts) -> tuple[Place, ...]:
        """Return the places of all kinds."""
        return tuple(place for kind in self.kinds for place in kind.places(facts))
