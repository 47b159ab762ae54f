"""Plans the files of a Colab target."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from provision.effects.google import DeleteObjects, UploadObjects
from provision.effects.local import RemoveFileIfUnmodified, RemoveTree, WriteFile
from provision.effects.system import Effect
from provision.errors import Refused
from provision.facts import Facts
from provision.kinds.colab import find_shape
from provision.plan import Action, Operation
from provision.state import FOREIGN_RECORD_HINT, Ledger, resolve_own_folder, to_folder_name
from provision.targets.capabilities import describe_edited_copy
from provision.targets.colab.file_names import (
    CELL_SUFFIX,
    NOTEBOOK_SUFFIX,
    PAYLOAD_SUFFIX,
    build_file_stem,
    get_colab_target,
)
from provision.targets.colab.locations import get_bucket_folder
from provision.targets.colab.observation import ColabObservation
from provision.targets.colab.records import NotebookRecord, SessionRecord
from provision.targets.colab.rendered_files import RenderedFiles
from provision.targets.context import TargetContext

PUSH_NOTE = "payload: commit and push"
"""Beginning of the note that the cell cannot fetch its payload from the repository yet."""
_MAX_NAMED = 5
"""Packages that a plan names one by one. Our choice."""


def plan_files(context: TargetContext, observed: ColabObservation) -> Action:
    """Return the action that brings the notebook and the cell up to date with spec and lock."""
    files = observed.rendered.merge_files(observed.existing_files)
    changed = {
        name: content
        for name, content in files.items()
        if observed.existing_files.get(name) != content
    }
    upload_to = observed.rendered.payload_object if observed.unreachable else ""
    effects: list[Effect] = [
        WriteFile(observed.folder / name, _content(name, content), None)
        for name, content in changed.items()
    ]
    if observed.recorded is not None:
        removals = _file_removals(observed.recorded.files, observed.folder)
        effects += (removal for removal in removals if removal.path.name not in files)
    record = _build_record(context, observed.rendered)
    notebook = observed.rendered.notebook_name
    if upload_to:
        effects.insert(0, UploadObjects(((upload_to, observed.rendered.payload),)))
    copies = observed.rendered.find_edited_copies(observed.existing_files)
    notes = [f"{notebook}: {describe_edited_copy(name)}" for name in copies]
    operation, reason = Operation.CHANGE, "the files are up to date"
    if observed.recorded is None and not observed.existing_files:
        operation, reason = Operation.CREATE, "it does not exist yet"
    elif effects:
        reason = "its name changed"
        if changed:
            verb = "are" if len(changed) > 1 else "is"
            reason = f"{', '.join(changed)} {verb} out of date"
        elif upload_to:
            reason = "its payload is not in the bucket"
    elif observed.recorded == record:
        operation = Operation.KEEP
    else:
        reason += " and are added to the state"
    return Action(
        operation,
        context.address,
        record.part,
        record.title,
        reason,
        tuple(effects),
        record.to_json(),
        (
            *_notes(context, observed.facts),
            *filter(None, (observed.code_note,)),
            *_payload_notes(observed),
            *notes,
        ),
    )


def plan_file_removals(address: str, folder: Path, ledger: Ledger) -> Iterator[Action]:
    """Yield the removal of the recorded files, except edited ones."""
    for part, record in ledger.state.parts(address).items():
        if part == SessionRecord.part:
            continue
        effects: list[Effect] = []
        if part == NotebookRecord.part:
            effects += _file_removals(record.get("files", {}), folder.parent)
            effects += _object_removals(NotebookRecord.from_json(record))
        for path in record.get("paths", ()):
            effects.append(RemoveTree(resolve_own_folder(folder, path, address)))
        title, reason = str(record.get("title", part)), "destroy was requested"
        yield Action(Operation.DESTROY, address, part, title, reason, tuple(effects))


def _content(name: str, content: bytes) -> str | bytes:
    return content if name.endswith(PAYLOAD_SUFFIX) else content.decode()


def _build_record(context: TargetContext, rendered: RenderedFiles) -> NotebookRecord:
    stem = build_file_stem(context)
    folder = get_bucket_folder(context, rendered.nonce) if get_colab_target(context).bucket else ""
    # The files without additions by people: `destroy` removes only such files.
    files = {
        name: hashlib.sha256(content).hexdigest()
        for name, content in rendered.merge_files({}).items()
    }
    return NotebookRecord(
        f"notebook {stem}{NOTEBOOK_SUFFIX} and cell {stem}{CELL_SUFFIX}",
        get_colab_target(context).via,
        (f"reports/{to_folder_name(context.address)}",),
        files,
        rendered.nonce,
        context.environment.digest,
        context.lock.digest,
        rendered.sha256,
        report=rendered.report,
        folder=folder,
        inputs=rendered.inputs,
    )


def _file_removals(files: Mapping[str, str], folder: Path) -> Iterator[RemoveFileIfUnmodified]:
    """Yield the removals of recorded files.

    Raises:
        Refused: provision does not write files with such a name.
    """
    suffixes = (CELL_SUFFIX, NOTEBOOK_SUFFIX, PAYLOAD_SUFFIX)
    for name, sha256 in files.items():
        if Path(name).name != name or not name.endswith(suffixes):
            raise Refused(
                f"refusing to remove {name}",
                why="the state lists it, but provision never uses this file name",
                hint=FOREIGN_RECORD_HINT,
            )
        yield RemoveFileIfUnmodified(folder / name, sha256)


def _object_removals(record: NotebookRecord) -> Iterator[DeleteObjects]:
    """Yield the removal of payload and report from a bucket.

    Raises:
        Refused: it is not a folder that provision writes to.
    """
    if not record.folder:
        return
    if not record.folder.startswith("gs://") or not record.folder.endswith(f"/{record.nonce}/"):
        raise Refused(
            f"refusing to delete {record.folder}",
            why="the state lists it, but it is not a folder that provision would have created",
            hint=FOREIGN_RECORD_HINT,
        )
    yield DeleteObjects(record.folder)


def _payload_notes(observed: ColabObservation) -> Iterator[str]:
    files = observed.rendered
    if files.payload_object:
        yield f"payload: the cell fetches it from {files.payload_object}"
    elif files.github_addresses:
        yield f"payload: the cell fetches it from {files.url}"
        if observed.unreachable:
            yield f"{PUSH_NOTE} {files.payload_name}: {observed.unreachable}"
    if files.report:
        yield f"report: the cell copies it to {files.report}"


def _notes(context: TargetContext, facts: Facts) -> Iterator[str]:
    target = get_colab_target(context)
    runtime = facts.runtimes.get(target.runtime)
    details = ": not in the facts"
    if runtime is not None:
        details = (
            f", Python {runtime.python}, torch {runtime.torch}, as of {runtime.evidence.as_of}; "
            "the cell checks these again"
        )
    yield f"runtime: {target.runtime}{details}"
    if target.via == "colab-cli":
        how = "on a machine requested with the `colab` program, always with the newest runtime"
        yield f"run: {how}, and released at the end (unless --keep is set)"
    yield f"machine: {_describe_machine(context, facts)}"
    if target.isolation == "venv":
        yield "packages: in an environment separate from the runtime's packages"
        return
    chosen = context.lock.targets[context.target]
    counts = (len(chosen.kept), len(chosen.changed), len(chosen.added))
    yield "packages: {} kept, {} changed, {} added".format(*counts)
    versions = context.lock.versions(context.environment)
    if chosen.changed:
        changes = [
            f"{name} {before} to {versions.get(name, before)}"
            for name, before in sorted(chosen.changed.items())
        ]
        yield f"changed: {_join_first(changes)}"
    if chosen.added:
        yield f"added: {_join_first(chosen.added)}"
    restart = f"yes ({', '.join(chosen.restart)})" if chosen.restart else "no"
    yield f"restart needed: {restart}"


def _describe_machine(context: TargetContext, facts: Facts) -> str:
    gpu = context.spec.gpu
    text = "no GPU" if gpu.is_none else str(gpu)
    shape = find_shape(gpu, get_colab_target(context).shape, facts)
    if shape is None:
        return text
    if shape.shape == "high":
        text += ", high RAM"
    if shape.units_per_hour:
        text += f", {shape.units_per_hour} compute units per hour as of {shape.evidence.as_of}"
    return text if shape.free_tier else f"{text}, not in the free tier"


def _join_first(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMED
    shown = ", ".join(names[:_MAX_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown
