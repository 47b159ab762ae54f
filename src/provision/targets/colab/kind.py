"""A Colab runtime as a kind of place: what is written for it here, since nobody but its notebook can make an environment there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.effects import Effect, Reader, RemoveTree, RemoveUnchanged, WriteFile
from provision.errors import Refused
from provision.facts import Facts
from provision.facts import load as load_facts
from provision.plan import Action, Verb
from provision.state import Ledger
from provision.targets.colab.leaving import SESSION, sessions_away
from provision.targets.colab.naming import CELL, NOTEBOOK, PAYLOAD, colab, name_of
from provision.targets.colab.refusing import refusals_of
from provision.targets.colab.rendering import MOST, Rendered, foreign, names, rendered
from provision.targets.colab.shapes import shape_of
from provision.targets.local import declared_variables
from provision.targets.recorded_paths import own_folder
from provision.targets.target import Place, Refusal, Seat

PART = "notebook"
_LIMIT = 64 * 2**20
_TOLD = 5
"""Packages that a plan names one by one. Our choice."""
_SYSTEM, _VENV = Path("/usr"), Path("/content/.provision/env")
"""Where programs run there, so far as it is known here: the cell puts the digest of what it was made from before `env`."""


@dataclass(frozen=True, slots=True)
class Have:
    """What was found in the folder of the files: those of ours, what is recorded of them, what is refused, and what would be written."""

    facts: Facts
    folder: Path
    there: Mapping[str, bytes]
    recorded: Mapping[str, Any] | None
    unfit: tuple[Refusal, ...]
    made: Rendered


@dataclass(frozen=True, slots=True)
class Colab:
    """Runtimes of Google Colab (see provision.targets.Target). `facts` gives what is known of them."""

    facts: Callable[[], Facts] = load_facts
    platform: str | None = "linux-x86_64"

    def look(self, place: Place, ledger: Ledger, reader: Reader) -> Have:
        """Return what was written for the place already. Nothing is asked of Colab: a runtime costs from the moment it is there."""
        return self.look_in(place.folder.parent, place, ledger, reader)

    def look_in(self, folder: Path, place: Place, ledger: Ledger, reader: Reader, *, url: str = "") -> Have:
        """Return what was written for the place already in a folder; with `url`, the payload apart from the cell."""
        facts = self.facts()
        found = {name: reader.read(folder / name, _LIMIT) for name in names(place, url) if reader.exists(folder / name)}
        others = tuple(name for name, content in found.items() if foreign(name, content))
        made = rendered(place, facts, spec_file=spec_file(place, reader), url=url)
        unfit = (*refusals_of(place, facts, others), *_of_size(place, made))
        there = {name: content for name, content in found.items() if name not in others}
        return Have(facts, folder, there, ledger.state.resource(place.address, PART), unfit, made)

    def refusals(self, place: Place, have: Have) -> tuple[Refusal, ...]:  # noqa: ARG002 - all of it was found by looking
        """Return what the spec asks for that a runtime cannot be asked for."""
        return have.unfit

    def plan(self, place: Place, have: Have) -> tuple[Action, ...]:
        """Return the one action: the notebook and its cell."""
        files = have.made.files(have.there)
        moved = {name: content for name, content in files.items() if have.there.get(name) != content}
        effects: tuple[Effect, ...] = tuple(WriteFile(have.folder / name, _content(name, content), None) for name, content in moved.items())
        effects = (*effects, *(away for away in _away(have.recorded or {}, have.folder) if away.path.name not in files))
        record = _record(place, have.made)
        copies = (f"{have.made.notebook_name}: {copy_kept(name)}" for name in have.made.edited_copies(have.there))
        notes = (*_notes(place, have.facts), *copies)

        def act(verb: Verb, because: str) -> tuple[Action, ...]:
            return (Action(verb, place.address, PART, record["title"], because, effects, record, notes),)

        if have.recorded is None and not have.there:
            return act(Verb.CREATE, "there is none yet")
        if effects:
            return act(Verb.CHANGE, f"{', '.join(moved) or 'its name'} {'differ' if len(moved) > 1 else 'differs'} from what spec and lock make")
        if have.recorded == record:
            return act(Verb.KEEP, "the files are what spec and lock make")
        return act(Verb.CHANGE, "the files are what spec and lock make, and are recorded now")

    def destroy(self, address: str, folder: Path, ledger: Ledger) -> tuple[Action, ...]:
        """Return the actions that give back its machines and remove what was written for it; files that someone has changed since stay."""
        actions = list(sessions_away(address, folder, ledger))
        for part, record in ledger.state.parts(address).items():
            if part == SESSION:
                continue
            effects: tuple[Effect, ...] = tuple(RemoveTree(own_folder(folder, path, address)) for path in record.get("paths", ()))
            effects = (*_away(record, folder.parent), *effects) if part == PART else effects
            actions.append(Action(Verb.DESTROY, address, part, str(record.get("title", part)), "destroy was asked for", effects))
        return tuple(actions)

    def seat(self, place: Place) -> Seat:
        """Return where programs run on the runtime; the paths are the runtime's."""
        if colab(place).isolation == "venv":
            return Seat(_VENV / "bin/python", _VENV, _VENV)
        return Seat(_SYSTEM / "bin/python3", _SYSTEM, _SYSTEM)

    def variables(self, place: Place, caller: Mapping[str, str], *, partial: bool = False) -> dict[str, str]:  # noqa: ARG002 - the caller's variables stay here
        """Return the declared variables; secrets are read on the runtime."""
        return declared_variables(place.spec)


def copy_kept(name: str) -> str:
    """Say that an edited copy of a rendered cell stays in its notebook."""
    return f"the edited copy of the cell {name} stays, as a cell of its own"


def spec_file(place: Place, reader: Reader) -> str:
    """Return how the file of a place's spec is called."""
    short = f"{place.stem}.yml"
    return short if reader.exists(place.folder.parent / short) else f"{place.stem}.yaml"


def _content(name: str, content: bytes) -> str | bytes:
    return content if name.endswith(PAYLOAD) else content.decode()


def _of_size(place: Place, made: Rendered) -> Iterator[Refusal]:
    if len(made.cell) > MOST:
        why = f"the cell would have {len(made.cell) // 2**10} KiB, and {MOST // 2**10} KiB are as much as one is given"
        yield Refusal(("targets", place.target), why, "`provision render SPEC --payload-url URL` writes what it carries into a file of its own")


def _record(place: Place, made: Rendered) -> dict[str, Any]:
    return {
        "title": f"notebook {name_of(place)}{NOTEBOOK} and cell {name_of(place)}{CELL}",
        "kind": "colab",
        "via": colab(place).via,
        "paths": [f"reports/{place.stem}.{place.target}"],
        # As they are without anything of other people: what `destroy` may remove.
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in made.files({}).items()},
        "nonce": made.nonce,
        "digest": place.environment.digest,
        "lock": place.lock.digest,
        "payload": made.sha256,
    }


def _away(record: Mapping[str, Any], folder: Path) -> Iterator[RemoveUnchanged]:
    """Yield the removals of recorded files; raises Refused for a name that is not one of ours."""
    for name, sha256 in dict(record.get("files", {})).items():
        if Path(name).name != name or not name.endswith((CELL, NOTEBOOK, PAYLOAD)):
            raise Refused(
                f"{name} is not a file that provision makes", why="the state names it", hint="look at the state file: provision did not write this into it"
            )
        yield RemoveUnchanged(folder / name, str(sha256))


def _notes(place: Place, facts: Facts) -> Iterator[str]:
    target, gpu, chosen = colab(place), place.spec.gpu, place.lock.targets[place.target]
    runtime, shape = facts.runtimes.get(target.runtime), shape_of(place.spec.gpu, target.shape, facts)
    known = f", Python {runtime.python}, torch {runtime.torch}, as of {runtime.evidence.as_of}; the cell looks again" if runtime else ": not in the facts"
    yield f"runtime: {target.runtime}{known}"
    if target.via == "colab-cli":
        yield "run: on a machine taken for it through the colab program, always with the newest runtime, and given back at the end (unless --keep)"
    units = f", {shape.units_per_hour} compute units an hour as of {shape.evidence.as_of}" if shape and shape.units_per_hour else ""
    tier = "" if shape is None or shape.free_tier else ", not in the free tier"
    yield f"machine: {'no GPU' if gpu.none else gpu}{', high RAM' if shape and shape.shape == 'high' else ''}{units}{tier}"
    if target.isolation == "venv":
        yield "packages: in an environment of its own, apart from the runtime's"
        return
    yield f"packages: {len(chosen.kept)} kept, {len(chosen.changed)} changed, {len(chosen.added)} added"
    versions = place.lock.versions(place.environment)
    if chosen.changed:
        yield f"changed: {_listed([f'{name} {there} to {versions.get(name, there)}' for name, there in sorted(chosen.changed.items())])}"
    if chosen.added:
        yield f"added: {_listed(chosen.added)}"
    yield f"restart needed: yes ({', '.join(chosen.restart)})" if chosen.restart else "restart needed: no"


def _listed(words: Any) -> str:
    return ", ".join(words[:_TOLD]) + (f" and {len(words) - _TOLD} more" if len(words) > _TOLD else "")
