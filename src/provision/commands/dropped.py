"""Reports that people put into the folder of their target by hand: filed when they fit, else set aside, with the reason beside them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from provision.commands.loading import Loaded
from provision.effects import MakeFolder, MoveFile, RemoveTree, Tell, World, WriteFile
from provision.errors import LockError, ProvisionError, Refused, WorldError
from provision.places import ColabTarget
from provision.safe import safe
from provision.state import State
from provision.stores import LocalStore
from provision.targets.colab.kind import PART
from provision.verification.report import LIMIT

if TYPE_CHECKING:
    from provision.commands.receiving import Received

_REPORT = "report.json"
_OURS = ("expectations.json", "report-only.json", "status.json")
"""What lies in the folder of a target beside its report, and is none."""
ASIDE = "refused"


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was found in the folders: the reports that were filed, and for each refused file where it lies now and why."""

    filed: tuple[Received, ...] = ()
    refused: tuple[tuple[Path, ProvisionError], ...] = ()


def gather(loaded: Loaded, world: World, tell: Tell, *, lock_wait_s: float = 0) -> Gathered:
    """File what was dropped for the Colab targets of a spec; where nothing was, nothing is locked or loaded.

    A file that is refused is moved to the folder `refused` beside it, with a .txt that says why: so it is named once, and not lost.
    """
    store = LocalStore(loaded.folder, world)
    if not any(_dropped(loaded, store.ledger().state, world)):
        return Gathered()
    filed: list[Received] = []
    refused: list[tuple[Path, ProvisionError]] = []
    with store.exclusive(lock_wait_s, tell):
        for target, path in tuple(_dropped(loaded, store.ledger().state, world)):
            try:
                filed.append(_file(target, path, loaded, store, world, tell))
            except (Refused, LockError) as error:
                refused.append((_set_aside(path, error, world, tell), error))
    return Gathered(tuple(filed), tuple(refused))


def _dropped(loaded: Loaded, state: State, world: World) -> Iterator[tuple[str, Path]]:
    """Yield (target, path) of each file that is not one of ours; report.json is not where its content is another than we filed."""
    for target, place in loaded.spec.targets.items():
        if not isinstance(place, ColabTarget) or state.resource(f"{loaded.stem}/{target}", PART) is None:
            continue
        folder = loaded.folder / "reports" / f"{loaded.stem}.{target}"
        recorded = (state.resource(f"{loaded.stem}/{target}", "verification") or {}).get("sha256")
        for name in world.entries(folder):
            foreign = name.lower().endswith(".json") and not name.startswith(".") and name not in _OURS
            if foreign and not (name == _REPORT and _sha256(folder / name, world) == recorded):
                yield target, folder / name


def _sha256(path: Path, world: World) -> str:
    try:
        return hashlib.sha256(world.read(path, LIMIT)).hexdigest()
    except WorldError:
        return ""


def _file(target: str, path: Path, loaded: Loaded, store: LocalStore, world: World, tell: Tell) -> Received:
    from provision.commands.receiving import receive_report  # here: as a rule nothing was dropped
    from provision.verification.foreign import read_foreign

    name = path.relative_to(loaded.folder.parent).as_posix()
    try:
        content = world.read(path, LIMIT)
    except WorldError as error:
        raise Refused(error.what, why=error.why, hint=error.hint) from error
    received = receive_report(read_foreign(content, name), name, loaded, target, store.ledger().state, store, world, tell)
    if path.name != _REPORT:
        world.perform(RemoveTree(path), tell)
    return received


def _set_aside(path: Path, error: ProvisionError, world: World, tell: Tell) -> Path:
    folder = path.parent / ASIDE
    taken = world.entries(folder)
    name = next(name for number in range(1, 10_000) if (name := path.name if number == 1 else f"{path.stem}-{number}{path.suffix}") not in taken)
    world.perform(MakeFolder(folder, 0o700), tell)
    world.perform(MoveFile(path, folder / name), tell)
    world.perform(WriteFile(folder / f"{name}.txt", safe("\n".join(filter(None, (error.what, error.why, error.hint)))) + "\n", 0o600), tell)
    return folder / name
