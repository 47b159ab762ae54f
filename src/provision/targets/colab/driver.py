"""A Colab runtime as a kind of place: what is written for it here, since nobody but its notebook
can make an environment there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.effects import Effect, Reader, RemoveFileIfUnmodified, RemoveTree, WriteFile
from provision.errors import Refused
from provision.facts import Facts, load_facts
from provision.plan import Action, Operation
from provision.state import Ledger
from provision.targets.base import Interpreter, Refusal, TargetContext
from provision.targets.colab.file_names import (
    CELL_SUFFIX,
    NOTEBOOK_SUFFIX,
    PAYLOAD_SUFFIX,
    build_file_stem,
    get_colab_target,
)
from provision.targets.colab.refusals import find_refusals
from provision.targets.colab.rendered_files import (
    MAX_CELL_BYTES,
    RenderedFiles,
    is_foreign_file,
    list_file_names,
    render_files,
)
from provision.targets.colab.sessions import SESSION_PART, plan_session_stops
from provision.targets.colab.shapes import find_shape
from provision.targets.local.driver import declared_variables
from provision.targets.recorded_paths import resolve_own_folder

NOTEBOOK_PART = "notebook"
_LIMIT = 64 * 2**20
_MAX_NAMED = 5
"""Packages that a plan names one by one. Our choice."""
_SYSTEM, _VENV = Path("/usr"), Path("/content/.provision/env")
"""Where programs run there, so far as it is known here: the cell puts the digest of what it was
made from before `env`.
"""


@dataclass(frozen=True, slots=True)
class ColabObservation:
    """What was found in the folder of the files: those of ours, what is recorded of them, what is
    refused, and what would be written.
    """

    facts: Facts
    folder: Path
    existing_files: Mapping[str, bytes]
    recorded: Mapping[str, Any] | None
    found_refusals: tuple[Refusal, ...]
    rendered: RenderedFiles


@dataclass(frozen=True, slots=True)
class ColabDriver:
    """Runtimes of Google Colab (see provision.targets.Target). `facts` gives what is known of them."""  # noqa: E501

    facts: Callable[[], Facts] = load_facts
    platform: str | None = "linux-x86_64"

    def observe(self, context: TargetContext, ledger: Ledger, reader: Reader) -> ColabObservation:
        """Return what was written for the place already. Nothing is asked of Colab: a runtime costs
        from the moment it is there.
        """
        return self.observe_folder(context.folder.parent, context, ledger, reader)

    def observe_folder(
        self, folder: Path, context: TargetContext, ledger: Ledger, reader: Reader, *, url: str = ""
    ) -> ColabObservation:
        """Return what was written for the place already in a folder; with `url`, the payload apart
        from the cell.
        """
        facts = self.facts()
        found = {
            name: reader.read(folder / name, _LIMIT)
            for name in list_file_names(context, url)
            if reader.exists(folder / name)
        }
        others = tuple(name for name, content in found.items() if is_foreign_file(name, content))
        made = render_files(context, facts, spec_file=get_spec_file_name(context, reader), url=url)
        unfit = (*find_refusals(context, facts, others), *_size_refusals(context, made))
        there = {name: content for name, content in found.items() if name not in others}
        return ColabObservation(
            facts, folder, there, ledger.state.resource(context.address, NOTEBOOK_PART), unfit, made
        )

    def refusals(self, context: TargetContext, observed: ColabObservation) -> tuple[Refusal, ...]:  # noqa: ARG002
        """Return what the spec asks for that a runtime cannot be asked for."""
        return observed.found_refusals

    def plan(self, context: TargetContext, observed: ColabObservation) -> tuple[Action, ...]:
        """Return the one action: the notebook and its cell."""
        files = observed.rendered.merge_files(observed.existing_files)
        moved = {
            name: content
            for name, content in files.items()
            if observed.existing_files.get(name) != content
        }
        effects: tuple[Effect, ...] = tuple(
            WriteFile(observed.folder / name, _content(name, content), None)
            for name, content in moved.items()
        )
        effects = (
            *effects,
            *(
                away
                for away in _file_removals(observed.recorded or {}, observed.folder)
                if away.path.name not in files
            ),
        )
        record = _record(context, observed.rendered)
        copies = (
            f"{observed.rendered.notebook_name}: {describe_kept_copy(name)}"
            for name in observed.rendered.find_edited_copies(observed.existing_files)
        )
        notes = (*_notes(context, observed.facts), *copies)

        def act(verb: Operation, because: str) -> tuple[Action, ...]:
            return (
                Action(
                    verb,
                    context.address,
                    NOTEBOOK_PART,
                    record["title"],
                    because,
                    effects,
                    record,
                    notes,
                ),
            )

        if observed.recorded is None and not observed.existing_files:
            return act(Operation.CREATE, "there is none yet")
        if effects:
            return act(
                Operation.CHANGE,
                f"{', '.join(moved) or 'its name'} "
                f"{'differ' if len(moved) > 1 else 'differs'} from what spec and lock make",
            )
        if observed.recorded == record:
            return act(Operation.KEEP, "the files are what spec and lock make")
        return act(Operation.CHANGE, "the files are what spec and lock make, and are recorded now")

    def destroy(self, address: str, folder: Path, ledger: Ledger) -> tuple[Action, ...]:
        """Return the actions that give back its machines and remove what was written for it; files
        that someone has changed since stay.
        """
        actions = list(plan_session_stops(address, folder, ledger))
        for part, record in ledger.state.parts(address).items():
            if part == SESSION_PART:
                continue
            effects: tuple[Effect, ...] = tuple(
                RemoveTree(resolve_own_folder(folder, path, address))
                for path in record.get("paths", ())
            )
            effects = (
                (*_file_removals(record, folder.parent), *effects)
                if part == NOTEBOOK_PART
                else effects
            )
            actions.append(
                Action(
                    Operation.DESTROY,
                    address,
                    part,
                    str(record.get("title", part)),
                    "destroy was asked for",
                    effects,
                )
            )
        return tuple(actions)

    def get_interpreter(self, context: TargetContext) -> Interpreter:
        """Return where programs run on the runtime; the paths are the runtime's."""
        if get_colab_target(context).isolation == "venv":
            return Interpreter(_VENV / "bin/python", _VENV, _VENV)
        return Interpreter(_SYSTEM / "bin/python3", _SYSTEM, _SYSTEM)

    def get_environment_variables(
        self,
        context: TargetContext,
        caller: Mapping[str, str],  # noqa: ARG002
        *,
        partial: bool = False,  # noqa: ARG002
    ) -> dict[str, str]:
        """Return the declared variables; secrets are read on the runtime."""
        return declared_variables(context.spec)


def describe_kept_copy(name: str) -> str:
    """Say that an edited copy of a rendered cell stays in its notebook."""
    return f"the edited copy of the cell {name} stays, as a cell of its own"


def get_spec_file_name(context: TargetContext, reader: Reader) -> str:
    """Return how the file of a place's spec is called."""
    short = f"{context.stem}.yml"
    return short if reader.exists(context.folder.parent / short) else f"{context.stem}.yaml"


def _content(name: str, content: bytes) -> str | bytes:
    return content if name.endswith(PAYLOAD_SUFFIX) else content.decode()


def _size_refusals(context: TargetContext, made: RenderedFiles) -> Iterator[Refusal]:
    if len(made.cell) > MAX_CELL_BYTES:
        why = (
            f"the cell would have {len(made.cell) // 2**10} KiB, and {MAX_CELL_BYTES // 2**10} "
            "KiB are as much as one is given"
        )
        yield Refusal(
            ("targets", context.target),
            why,
            "`provision render SPEC --payload-url URL` writes what it carries into a file "
            "of its own",
        )


def _record(context: TargetContext, made: RenderedFiles) -> dict[str, Any]:
    return {
        "title": f"notebook {build_file_stem(context)}{NOTEBOOK_SUFFIX} and cell "
        f"{build_file_stem(context)}{CELL_SUFFIX}",
        "kind": "colab",
        "via": get_colab_target(context).via,
        "paths": [f"reports/{context.stem}.{context.target}"],
        # As they are without anything of other people: what `destroy` may remove.
        "files": {
            name: hashlib.sha256(content).hexdigest()
            for name, content in made.merge_files({}).items()
        },
        "nonce": made.nonce,
        "digest": context.environment.digest,
        "lock": context.lock.digest,
        "payload": made.sha256,
    }


def _file_removals(record: Mapping[str, Any], folder: Path) -> Iterator[RemoveFileIfUnmodified]:
    """Yield the removals of recorded files; raises Refused for a name that is not one of ours."""
    for name, sha256 in dict(record.get("files", {})).items():
        if Path(name).name != name or not name.endswith(
            (CELL_SUFFIX, NOTEBOOK_SUFFIX, PAYLOAD_SUFFIX)
        ):
            raise Refused(
                f"{name} is not a file that provision makes",
                why="the state names it",
                hint="look at the state file: provision did not write this into it",
            )
        yield RemoveFileIfUnmodified(folder / name, str(sha256))


def _notes(context: TargetContext, facts: Facts) -> Iterator[str]:
    target, gpu, chosen = (
        get_colab_target(context),
        context.spec.gpu,
        context.lock.targets[context.target],
    )
    runtime, shape = (
        facts.runtimes.get(target.runtime),
        find_shape(context.spec.gpu, target.shape, facts),
    )
    known = (
        f", Python {runtime.python}, torch {runtime.torch}, as of "
        f"{runtime.evidence.as_of}; the cell looks again"
        if runtime
        else ": not in the facts"
    )
    yield f"runtime: {target.runtime}{known}"
    if target.via == "colab-cli":
        (
            yield "run: on a machine taken for it through the colab program, always with the "
            "newest "
            "runtime, and given back at the end (unless --keep)"
        )
    units = (
        f", {shape.units_per_hour} compute units an hour as of {shape.evidence.as_of}"
        if shape and shape.units_per_hour
        else ""
    )
    tier = "" if shape is None or shape.free_tier else ", not in the free tier"
    (
        yield "machine: "
        f"{'no GPU' if gpu.is_none else gpu}{', high RAM' if shape and shape.shape == 'high' else ''}{units}{tier}"  # noqa: E501
    )
    if target.isolation == "venv":
        yield "packages: in an environment of its own, apart from the runtime's"
        return
    (
        yield f"packages: {len(chosen.kept)} kept, {len(chosen.changed)} changed, "
        f"{len(chosen.added)} added"
    )
    versions = context.lock.versions(context.environment)
    if chosen.changed:
        (
            yield "changed: "
            f"{_listed([f'{name} {there} to {versions.get(name, there)}' for name, there in sorted(chosen.changed.items())])}"  # noqa: E501
        )
    if chosen.added:
        yield f"added: {_listed(chosen.added)}"
    yield (
        f"restart needed: yes ({', '.join(chosen.restart)})"
        if chosen.restart
        else "restart needed: no"
    )


def _listed(words: Any) -> str:
    return ", ".join(words[:_MAX_NAMED]) + (
        f" and {len(words) - _MAX_NAMED} more" if len(words) > _MAX_NAMED else ""
    )
