"""The kind `local`: an environment on this machine."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from provision.facts import Facts
from provision.kinds.base import (
    NOT_SUPPORTED_YET,
    Gpu,
    Kind,
    Refusal,
    StarterField,
    TargetFacts,
    TargetFields,
    TargetModel,
)


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
    lock_fields = ("manager",)
    secret_sources = frozenset({"env"})
    reference_hint = "use a variable of this machine: {env: NAME}"

    def starter_fields(self, gpu: Gpu, facts: Facts, *, conda: bool) -> Mapping[str, StarterField]:  # noqa: ARG002
        """Return conda as the manager if the spec has packages of conda."""
        return {"manager": StarterField("conda")} if conda else {}

    def lock_platforms(self, declared: Sequence[str]) -> tuple[str, ...]:
        """Return the declared platforms."""
        return tuple(map(str, declared))

    def uses_conda(self, target: TargetModel) -> bool:
        """Return whether the manager is conda."""
        return isinstance(target, LocalTarget) and target.manager == "conda"

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
        if fields.cuda_toolkit is not None:
            yield Refusal(
                ("cuda_toolkit",),
                f"installing a CUDA toolkit on a local machine is {NOT_SUPPORTED_YET}",
                "install nvcc yourself and remove the field",
            )
        for name, source in fields.secrets.items():
            if source != "env":
                yield Refusal(
                    ("secrets", name),
                    "a local environment reads secrets from environment variables only",
                    f"use {{env: {name}}}",
                    rule="SEC004",
                )
