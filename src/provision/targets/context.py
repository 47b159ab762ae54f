"""A target of a spec with its lock and folders, and what a spec declares for its programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from provision.effects.code import CodeTree
from provision.effects.wheels import PackageSource
from provision.errors import Refused
from provision.facts import Card, Facts
from provision.kinds.base import Refusal
from provision.lock import Lock, LockedEnvironment
from provision.spec import Spec
from provision.spelling import format_command
from provision.state import to_folder_name
from provision.verification.device_files import expectations_of

Route = tuple[str | int, ...]
_ANY_SPEC = PurePath("SPEC")


@dataclass(frozen=True, slots=True)
class SandboxSources:
    """Substitutes in a sandbox: what is simulated, package indexes by name, folders of wheels."""

    simulated: tuple[str, ...]
    indexes: Mapping[str, str]
    find_links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetContext:
    """One target of one spec, with its lock and the folder that records what is made for it.

    Attributes:
        spec: The spec with the overrides of this target.
        stem: Name of the spec's file without its suffix.
        folder: The folder of state, environments and reports (.provision).
        platform: The platform that the environment is made for.
        sandbox_sources: What is simulated; None outside a sandbox.
        sandbox_spec: In a sandbox, the spec that was locked in place of `spec`.
        spec_path: The spec as the user named it, for commands in messages.
        target_option: The target for commands in messages; "" if the spec has only one.
        adopt: Resources that another state made may be taken over.
        code: The project's code as it is now; None if the spec declares none.
        sources: The packages from paths and repositories as they are now.
    """

    spec: Spec
    target: str
    stem: str
    folder: Path
    lock: Lock
    platform: str
    sandbox_sources: SandboxSources | None = None
    sandbox_spec: Spec | None = None
    spec_path: PurePath = _ANY_SPEC
    target_option: str = ""
    adopt: bool = False
    code: CodeTree | None = None
    sources: tuple[PackageSource, ...] = ()

    def command(self, verb: str) -> str:
        """Return the command line that applies a verb to this target."""
        sandbox = self.sandbox_sources is not None
        return format_command(verb, self.spec_path, self.target_option, sandbox=sandbox)

    @property
    def effective_spec(self) -> Spec:
        """The spec that the device is verified against."""
        return self.sandbox_spec or self.spec

    def expectations(self, prefix: PurePath) -> dict[str, Any]:
        """Return what the device is verified against, with the environment in `prefix`."""
        return expectations_of(
            self.effective_spec,
            self.target,
            self.lock,
            self.environment,
            prefix,
            None if self.code is None else self.code.digest,
            self.sources,
        )

    def with_run_command(self, expectations: dict[str, Any]) -> dict[str, Any]:
        """Return expectations with the command line that runs a program at this target.

        It depends on the working folder, and no verdict depends on it.
        """
        if "command" not in expectations:
            return expectations
        command = {**expectations["command"], "run": self.command("run")}
        return {**expectations, "command": command}

    @property
    def address(self) -> str:
        """The target's name in plan, state and journal."""
        return f"{self.stem}/{self.target}"

    @property
    def reports_folder(self) -> Path:
        """The folder of the target's reports."""
        return self.folder / "reports" / to_folder_name(self.address)

    @property
    def environment(self) -> LockedEnvironment:
        """The locked environment for this target and platform.

        Raises:
            Refused: the lock does not cover the platform.
        """
        environment = self.lock.environment(self.target, self.platform)
        if environment is None:
            raise Refused(
                f"the lock has no environment for target `{self.target}` on {self.platform}",
                why=f"the spec lists the platforms {', '.join(self.spec.platforms)}",
                hint=f"add {self.platform} to `platforms`",
            )
        return environment


@dataclass(frozen=True, slots=True)
class Interpreter:
    """Python of an environment: the program, its prefix, and the path that follows upgrades."""

    python: Path
    prefix: Path
    stable_prefix: Path


def find_card(context: TargetContext, facts: Facts) -> Card | None:
    """Return the GPU of the spec in the facts; None without a GPU."""
    gpu = context.spec.gpu
    return None if gpu.is_none else facts.card(gpu.type)


def refuse_untestable_gpu(
    context: TargetContext, others: frozenset[str] = frozenset()
) -> Iterator[Refusal]:
    """Yield the refusal of a GPU that no package can test; `others` are not the lock's."""
    gpu, packages = context.spec.gpu, others | context.lock.versions(context.environment).keys()
    if not gpu.is_none and packages.isdisjoint(context.spec.packages_that_test_a_gpu()):
        yield Refusal(
            ("gpu",),
            f"`gpu: {gpu}` can only be tested through torch, jax or TensorFlow, and none of "
            "them is in `packages`",
            "add the framework you train with to `packages`, or set `gpu: none`",
        )


CODE_VARIABLE = "PROVISION_CODE"
"""The variable that names the folder of the code."""


def declared_variables(spec: Spec, code_folder: Path | None = None) -> dict[str, str]:
    """Return the variables of a target's programs.

    They are `env`, PROVISION_PATH_<NAME> for each path, and the folder of the code if it is known.
    """
    paths = {f"PROVISION_PATH_{name.upper()}": path for name, path in spec.paths.items()}
    code = {CODE_VARIABLE: str(code_folder)} if code_folder is not None else {}
    return {**spec.env, **paths, **code}
