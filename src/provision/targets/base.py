"""What a kind of place must be able to do: look without changing anything, plan from values, and
say how programs run there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from provision.effects import Reader
from provision.errors import Refused
from provision.lock import Lock, LockedEnvironment
from provision.plan import Action
from provision.spec import Spec
from provision.state import Ledger

Route = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something a target cannot do for a spec: where the spec asks for it, why not, and the way
    out.
    """

    route: Route
    why: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class SandboxSources:
    """What takes the place of the real world in a sandbox: in words, and the addresses of package
    indexes, by name, and further places of wheels.
    """

    simulated: tuple[str, ...]
    indexes: Mapping[str, str]
    find_links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetContext:
    """One target of one spec: the spec as it holds there, its file's stem, the folder of our own
    files, the lock, and the platform it is made for.

    `stand_in` is what is not real there; None outside a sandbox. `substitute` is then the spec
    that was locked in place of `spec`. `said` is how a command
    names the place: the spec's path as the person wrote it, and the target where there are
    several. `adopt` tells that
    what another state made may be taken over.
    """

    spec: Spec
    target: str
    stem: str
    folder: Path
    lock: Lock
    platform: str
    sandbox_sources: SandboxSources | None = None
    sandbox_spec: Spec | None = None
    cli_arguments: str = "SPEC"
    adopt: bool = False

    def command(self, verb: str) -> str:
        """Return the command line that does something here."""
        return (
            f"provision {verb} "
            f"{self.cli_arguments}{' --sandbox' if self.sandbox_sources is not None else ''}"
        )

    @property
    def effective_spec(self) -> Spec:
        """The spec that the device is held to."""
        return self.sandbox_spec or self.spec

    @property
    def address(self) -> str:
        """The name under which plan, state and journal know this target."""
        return f"{self.stem}/{self.target}"

    @property
    def environment(self) -> LockedEnvironment:
        """What the lock holds for this target on this platform; raises Refused when the lock does
        not cover it.
        """
        found = self.lock.environment(self.target, self.platform)
        if found is None:
            raise Refused(
                f"the lock has nothing for target {self.target} on {self.platform}",
                why=f"the spec lists the platforms {', '.join(self.spec.platforms)}",
                hint=f"add {self.platform} to `platforms`",
            )
        return found


@dataclass(frozen=True, slots=True)
class Interpreter:
    """Where programs run: the interpreter, the environment's prefix, and the stable path that
    follows it.
    """

    python: Path
    prefix: Path
    stable_prefix: Path


class Driver(Protocol):
    """A kind of place. `look` is the only method that asks the world; the others take values and
    give values.
    """

    @property
    def platform(self) -> str | None:
        """The platform of every place of this kind; None where it is that of the machine at hand."""  # noqa: E501

    def observe(self, context: TargetContext, ledger: Ledger, reader: Reader) -> Any:
        """Return what is there now, as a value that `refusals` and `plan` understand."""

    def refusals(self, context: TargetContext, observed: Any) -> tuple[Refusal, ...]:
        """Return everything the spec asks for that this kind, on this machine, does not do."""

    def plan(self, context: TargetContext, observed: Any) -> tuple[Action, ...]:
        """Return the actions that make the place as declared; all KEEP when it is."""

    def destroy(self, address: str, folder: Path, ledger: Ledger) -> tuple[Action, ...]:
        """Return the actions that remove everything recorded at an address, half-made things
        included.
        """

    def get_interpreter(self, context: TargetContext) -> Interpreter:
        """Return where programs of this place run once it is made."""

    def get_environment_variables(
        self, context: TargetContext, caller: Mapping[str, str], *, partial: bool = False
    ) -> dict[str, str]:
        """Return the variables that programs get there; a secret whose source is not set raises
        Refused, or is left out when `partial`.
        """
