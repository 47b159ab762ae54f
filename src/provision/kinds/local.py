"""The kind `local`: an environment on this machine."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from provision.diagnostics import Route
from provision.facts import Evidence, Facts
from provision.kinds.base import (
    MAX_GPUS,
    NOT_SUPPORTED_YET,
    Gpu,
    Kind,
    ProvidedSoftware,
    ProvidedVersion,
    Refusal,
    TargetFacts,
    TargetFields,
    TargetModel,
)
from provision.kinds.places import Machine, Place
from provision.kinds.settings import StarterField
from provision.kinds.shared_refusals import refuse_cuda_toolkit
from provision.sanitize import escape_line


class LocalTarget(TargetModel):
    """An environment on this machine."""

    kind: Literal["local"]
    manager: Literal["uv", "conda"] = "uv"
    """Program that creates the environment."""
    kernel: bool = False
    """Register a Jupyter kernel for the environment (ipykernel must be among the packages)."""


class Local(Kind):
    """Environments of this machine, whose hardware and software are not in the facts."""

    name = "local"
    model = LocalTarget
    driver = "provision.targets.local.driver:LocalDriver"
    is_this_machine = True
    lock_fields = ("manager",)
    secret_sources = frozenset({"env"})
    reference_hint = "use an environment variable on this machine: {env: NAME}"
    runs_code = True
    installs_origins = True

    def __init__(self, machine: Machine | None = None) -> None:
        """Create the declaration, with the measurements of this machine if they are needed."""
        self._machine = machine

    def starter_fields(self, gpu: Gpu, facts: Facts, *, conda: bool) -> Mapping[str, StarterField]:  # noqa: ARG002
        """Return conda as the manager if the spec has packages of conda."""
        return {"manager": StarterField("conda")} if conda else {}

    def lock_platforms(self, declared: Sequence[str]) -> tuple[str, ...]:
        """Return the declared platforms."""
        return tuple(map(str, declared))

    def uses_conda(self, target: TargetModel) -> bool:
        """Return whether the manager is conda."""
        return isinstance(target, LocalTarget) and target.manager == "conda"

    def provides(
        self,
        target: LocalTarget,  # noqa: ARG002
        route: Route,
        facts: Facts,  # noqa: ARG002
        *,
        gpu: bool,
    ) -> ProvidedSoftware:
        """Return the driver and the C library of this machine if they were measured."""
        machine = self._machine
        if machine is None:
            return ProvidedSoftware()
        source = "this machine", (*route, "kind"), Evidence("measured", machine.as_of, "high")
        driver = ProvidedVersion(machine.driver, *source) if gpu and machine.driver else None
        glibc = ProvidedVersion(machine.glibc, *source) if machine.glibc else None
        return ProvidedSoftware(driver=driver, glibc=glibc)

    def measured(self, machine: Machine) -> "Local":
        """Return this kind with the measurements."""
        return Local(machine)

    def places(self, facts: Facts) -> Iterator[Place]:
        """Yield this machine."""
        target = {"kind": self.name}
        machine = self._machine
        if machine is None:
            yield Place(
                "this", "this machine, as measured", target, "none", "", is_this_machine=True
            )
            return
        gpu = _declare_gpu(machine, facts)
        words = "without an NVIDIA GPU" if gpu in ("none", "mps") else f"with {gpu}"
        driver = f", driver {machine.driver}" if machine.driver else ""
        yield Place(
            "this",
            f"this machine {words} ({_describe_python(machine)}{driver})",
            target,
            gpu,
            machine.python,
            machine.platform,
            is_this_machine=True,
        )

    def refusals(
        self, target: TargetFacts, fields: TargetFields, facts: Facts
    ) -> Iterator[Refusal]:
        """Yield the fields without effect and a Jupyter kernel that could not start."""
        if (
            isinstance(target.target, LocalTarget)
            and target.target.kernel
            and "ipykernel" not in fields.packages
        ):
            yield Refusal(
                (*target.route, "kernel"),
                "a Jupyter kernel needs ipykernel in the environment",
                "add ipykernel to `packages`",
            )
        yield from super().refusals(target, fields, facts)
        for origin_route in fields.origin_routes if self.uses_conda(target.target) else ():
            yield Refusal(
                origin_route,
                "a package from a path or a repository on a target with `manager: conda` is "
                f"{NOT_SUPPORTED_YET}",
                "use `manager: uv`, or serve the package's wheel from an index under `indexes`",
            )
        yield from refuse_cuda_toolkit(
            fields, "a local machine", "install nvcc yourself, and remove the field"
        )
        for name, sources in fields.secrets.items():
            if "env" not in sources:
                yield Refusal(
                    target.secret_route(name),
                    "a local environment reads secrets only from environment variables",
                    f"use {{env: {name}}}",
                    rule="SEC004",
                )


def _describe_python(machine: Machine) -> str:
    path = f" of {escape_line(machine.python_path)}" if machine.python_path else ""
    return f"Python {machine.python}{path}" if machine.python else f"unknown Python{path}"


def _declare_gpu(machine: Machine, facts: Facts) -> str:
    """Return the `gpu` of a spec for this machine, such as "L4", "A100-80GB:2", "mps" or "none"."""
    if not machine.gpus:
        return "mps" if machine.platform == "macos-arm64" else "none"
    first = machine.gpus[0]
    card = facts.card(first)
    unknown = re.sub(r"[^A-Za-z0-9._ -]", "", first).strip(" ._-") or "GPU"
    name = card.name if card is not None else unknown
    count = min(machine.gpus.count(first), MAX_GPUS)
    return name if count == 1 else f"{name}:{count}"
