"""The name by which the user's own conda finds an environment: a link in the first of its folders that may be written to, and nobody else's."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.effects import AddLink, CondaProgram, Effect, Reader, RemoveLink
from provision.plan import Action, Verb
from provision.targets.by_conda import by_conda
from provision.targets.target import Place

PART = "name"
_NOT_IN_NAMES = " /:#"
"""What conda takes for something else in a name. Source: PREFIX_NAME_DISALLOWED_CHARS of conda 26.7."""


@dataclass(frozen=True, slots=True)
class Naming:
    """What was found of a name: whose conda, the link that is or would be ours (None: there can be none, and `flaw` says why), what it points at now."""

    name: str
    program: CondaProgram
    link: Path | None
    end: str
    found: str | None = None
    flaw: str = ""
    rival: Path | None = None
    """What has the name already, and is not ours."""


def look(place: Place, stable: Path, recorded: Mapping[str, Any] | None, program: CondaProgram | None, reader: Reader) -> Naming | None:
    """Return what is known of a place's name; None where no conda of the user's makes it. conda is asked only while there is no link of ours."""
    if not by_conda(place) or program is None or program.path is None:
        return None
    ours = _Ours(str(stable), (recorded or {}).get("end", ""), reader)
    if recorded and recorded.get("link") and ours(link := Path(recorded["link"])):
        return Naming(stable.name, program, link, ours.end, reader.link(link))
    if recorded and recorded.get("rival") and _there(rival := Path(recorded["rival"]), reader) and not ours(rival):
        return _taken(stable.name, program, ours.end, rival)
    if unfit := [sign for sign in _NOT_IN_NAMES if sign in stable.name]:
        return Naming(stable.name, program, None, ours.end, flaw=f"conda takes no name with {unfit[0]!r} in it")
    folders = reader.conda_folders(program)
    paths = [folder / stable.name for folder in folders]
    if stable in paths:
        return Naming(stable.name, program, None, ours.end, flaw="it has that already: the folder of environments here is one of conda's own")
    rivals = [path for path in paths if _there(path, reader) and not ours(path)]
    if rivals:
        return _taken(stable.name, program, ours.end, rivals[0])
    fit = [*(path for path in paths if ours(path)), *(path for path in paths if reader.writable(path))]
    if not fit:
        return Naming(stable.name, program, None, ours.end, flaw=_nowhere(program, folders))
    return Naming(stable.name, program, fit[0], ours.end, reader.link(fit[0]))


def plan(place: Place, naming: Naming | None, recorded: Mapping[str, Any] | None) -> Action | None:
    """Return what is done about the name: given, kept, taken back, or why there is none."""

    def act(verb: Verb, title: str, because: str, effects: tuple[Effect, ...] = (), record: dict[str, Any] | None = None) -> Action:
        return Action(verb, place.address, PART, title, because, effects, {**record, "title": title} if record is not None else None)

    if naming is None:
        return _without_conda(place, recorded)
    if naming.link is None:
        record = {"name": naming.name, "rival": str(naming.rival)} if naming.rival is not None else None
        return act(Verb.KEEP, f"no name {naming.name} for {naming.program.name}", naming.flaw, (), record)
    title = f"name {naming.name} for {naming.program.name}: {naming.link}"
    held = {"name": naming.name, "program": naming.program.name, "link": str(naming.link), "end": naming.end}
    if naming.found == naming.end:
        return act(Verb.KEEP, title, "it leads to this environment", (), held)
    add = AddLink(naming.link, naming.end, instead_of=naming.found or "")
    if naming.found is not None:
        return act(Verb.CHANGE, title, "the folder of the spec was moved", (add,), held)
    return act(Verb.CREATE, title, f"so that `{naming.program.name} activate {naming.name}` finds it", (add,), held)


def activation_of(recorded: Mapping[str, Any] | None) -> str:
    """Return the command that activates an environment by its recorded name; "" where it has none."""
    return f"{recorded['program']} activate {shlex.quote(recorded['name'])}" if recorded and recorded.get("link") else ""


def removal(record: Mapping[str, Any]) -> Iterator[RemoveLink]:
    """Yield what takes a recorded name back once its environment is gone: a link that leads to one, as that of a copied folder does, is another's."""
    if record.get("link") and record.get("end"):
        yield RemoveLink(Path(record["link"]), str(record["end"]), dead=True)


class _Ours:
    """Tells links that lead to this place: by its path, or by the one that it had before its folder was moved, where nothing is any more."""

    def __init__(self, end: str, before: str, reader: Reader) -> None:
        self.end, self._before, self._reader = end, before, reader

    def __call__(self, path: Path) -> bool:
        found = self._reader.link(path)
        return found == self.end or (found is not None and found == self._before and not self._reader.exists(path))


def _there(path: Path, reader: Reader) -> bool:
    return reader.exists(path) or reader.link(path) is not None


def _taken(name: str, program: CondaProgram, end: str, rival: Path) -> Naming:
    flaw = f"{rival} is there already and is not this environment; it stays. Move it away (`{program.name} rename`), or activate this one by its path"
    return Naming(name, program, None, end, flaw=flaw, rival=rival)


def _nowhere(program: CondaProgram, folders: tuple[Path, ...]) -> str:
    if not folders:
        return f"`{program.name} info --json` does not tell where it looks for environments; activate it by its path"
    listed = ", ".join(str(folder) for folder in folders)
    return f"none of its folders may be written to ({listed}); add one of yours to envs_dirs, or activate it by its path"


def _without_conda(place: Place, recorded: Mapping[str, Any] | None) -> Action | None:
    """Where no conda of the user's makes the environment: a name that it has stays, unless conda has no part in it any more."""
    if recorded is None or by_conda(place):
        return None
    because = "the environment is no longer one of conda"
    effects = (RemoveLink(Path(recorded["link"]), str(recorded["end"])),) if recorded.get("link") else ()
    return Action(Verb.DESTROY, place.address, PART, str(recorded.get("title", PART)), because, effects)
