"""The specs of a folder, each with its targets and their prices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from provision.commands.lint_files import find_files
from provision.commands.shared.foreign_files import (
    NotASpec,
    declares_api_version,
    has_spec_keys,
    has_spec_name,
)
from provision.commands.shared.load import LoadedSpec
from provision.effects.system import Reader
from provision.errors import ExternalError, ProvisionError, SourceError, UsageError
from provision.facts import load_facts
from provision.facts.machines import MachineOffer
from provision.field_types import parse_size
from provision.spelling import pluralize
from provision.target_facts import target_facts

_MAX_SPEC_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class FleetTarget:
    """A target of a fleet.

    `label` names it in the output: "SPEC/TARGET" with the folder of the spec, or the target alone
    if the fleet is one spec. `offer` is its machine with the price, None if that is unknown or
    free.
    """

    loaded: LoadedSpec
    name: str
    label: str
    offer: MachineOffer | None

    @property
    def address(self) -> str:
        """The address of the target in the state of its folder."""
        return f"{self.loaded.stem}/{self.name}"

    @property
    def kind(self) -> str:
        """The kind of the target."""
        return self.loaded.spec.targets[self.name].kind


@dataclass(frozen=True, slots=True)
class Fleet:
    """The specs in `path`, or the one spec there.

    `failed` are the errors of specs and targets that cannot be used, by path or label; `skipped`
    are files that are not specs.
    """

    path: Path
    targets: tuple[FleetTarget, ...]
    failed: dict[str, ProvisionError]
    skipped: tuple[Path, ...] = ()

    @property
    def specs(self) -> tuple[LoadedSpec, ...]:
        """The specs of the targets."""
        return tuple({target.loaded.path: target.loaded for target in self.targets}.values())


def load_fleet(folder: Path, load: Callable[[Path], LoadedSpec], reader: Reader) -> Fleet:
    """Return the specs in a folder and in the folders below it.

    A file that does not look like a spec is left out. The error of a spec does not stop the others.

    Raises:
        UsageError: the folder contains no spec.
    """
    files, _ = find_files((folder,))
    specs: dict[tuple[Path, str], LoadedSpec] = {}
    failed: dict[str, ProvisionError] = {}
    skipped = []
    for path, _ in files:
        try:
            loaded = load(path)
            _refuse_duplicate(loaded, specs)
        except NotASpec:
            skipped.append(path)
        except ProvisionError as error:
            if _looks_like_spec(path, reader):
                failed[str(path)] = error
            else:
                skipped.append(path)
        else:
            specs[loaded.folder, loaded.stem] = loaded
            failed.update(
                (f"{_prefix(loaded, folder)}{name}", error)
                for name, error in loaded.target_errors.items()
            )
    if not specs and not failed:
        why = "it has no *.yaml file"
        if skipped:
            why = f"{pluralize(len(skipped), 'YAML file')} in it do not have the fields of a spec"
        raise UsageError(
            f"{folder} contains no specs",
            why=why,
            hint="use a folder that contains at least one spec",
        )
    targets = (
        target
        for loaded in specs.values()
        for target in list_targets(loaded, loaded.spec.targets, _prefix(loaded, folder))
        if target.name not in loaded.target_errors
    )
    return Fleet(folder, tuple(targets), failed, tuple(skipped))


def list_targets(
    loaded: LoadedSpec, names: Iterable[str], prefix: str = ""
) -> tuple[FleetTarget, ...]:
    """Return the named targets of a spec; their labels begin with `prefix`."""
    return tuple(
        FleetTarget(loaded, name, f"{prefix}{name}", find_offer(loaded, name)) for name in names
    )


def find_offer(loaded: LoadedSpec, name: str) -> MachineOffer | None:
    """Return the machine of a target with its price; None if that is unknown or free."""
    spec, facts = loaded.declared or loaded.spec, load_facts()
    target = target_facts(spec, facts, name)
    required = parse_size(spec.requires.ram) / 2**30 if spec.requires.ram else None
    chosen = target._replace(target=target.kind.chosen_target(target, required, facts))
    return chosen.kind.machine_offer(chosen, facts)


def _refuse_duplicate(loaded: LoadedSpec, specs: dict[tuple[Path, str], LoadedSpec]) -> None:
    """Raise UsageError for a second file of the same spec, which would have the same targets."""
    other = specs.get((loaded.folder, loaded.stem))
    if other is not None:
        raise UsageError(
            f"{loaded.path} and {other.path} have the same name, and would share the same state",
            why=f"both would create the targets of {loaded.stem} in {loaded.folder}",
            hint="remove one of them, or move it out of the folder",
        )


def _looks_like_spec(path: Path, reader: Reader) -> bool:
    """Return whether a file that cannot be used was meant as a spec."""
    if has_spec_name(path):
        return True
    try:
        text = reader.read(path, _MAX_SPEC_BYTES).decode("utf-8", "replace")
    except (ExternalError, SourceError):
        return True
    return has_spec_keys(text) or declares_api_version(text)


def _prefix(loaded: LoadedSpec, folder: Path) -> str:
    parent = loaded.path.parent.relative_to(folder)
    return f"{(parent / loaded.stem).as_posix()}/"
