"""Observation of a Colab target: existing files, files as they should be, and refusals."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from provision.effects.system import Reader
from provision.errors import NetworkError
from provision.facts import Facts
from provision.kinds.base import Refusal
from provision.state import Ledger
from provision.target_facts import find_target_refusals
from provision.targets.colab.code_delivery import describe_delivery, with_code_delivery
from provision.targets.colab.file_names import (
    PAYLOAD_SUFFIX,
    build_file_stem,
    get_colab_target,
)
from provision.targets.colab.github_link import find_github_file
from provision.targets.colab.payload import MAX_CELL_BYTES
from provision.targets.colab.records import NotebookRecord
from provision.targets.colab.rendered_files import (
    RenderedFiles,
    is_foreign_file,
    list_file_names,
    render_files,
)
from provision.targets.context import TargetContext, refuse_untestable_gpu

_MAX_FILE_BYTES = 64 * 2**20
_MAX_PAYLOAD_BYTES = 2**28
"""As in the cell, which reads no more."""


@dataclass(frozen=True, slots=True)
class ColabObservation:
    """Files that exist in a folder, their record, the refusals, and the files as they should be.

    Attributes:
        unreachable: Why the cell cannot fetch its payload yet; "" if it can, or was not checked.
    """

    facts: Facts
    folder: Path
    existing_files: Mapping[str, bytes]
    recorded: NotebookRecord | None
    found_refusals: tuple[Refusal, ...]
    rendered: RenderedFiles
    unreachable: str = ""
    code_note: str = ""


FetchFile = Callable[[str, int, Mapping[str, str]], bytes]
"""Reads a public file: its URL, the most bytes to read, and the variables of the caller."""


def observe_folder(
    folder: Path,
    context: TargetContext,
    facts: Facts,
    ledger: Ledger,
    reader: Reader,
    *,
    url: str = "",
) -> ColabObservation:
    """Return the files that exist in a folder; with `url` the payload has its own file."""
    contents = {
        name: reader.read(folder / name, _MAX_FILE_BYTES)
        for name in list_file_names(context, url)
        if reader.exists(folder / name)
    }
    foreign = tuple(name for name, content in contents.items() if is_foreign_file(name, content))
    own = {name: content for name, content in contents.items() if name not in foreign}
    recorded = NotebookRecord.find(ledger.state, context.address)
    context = with_code_delivery(context, own, reader, recorded)
    spec_file = get_spec_file_name(context, reader)
    github_file = find_github_file(folder / f"{build_file_stem(context)}{PAYLOAD_SUFFIX}", reader)
    files = render_files(
        context,
        facts,
        spec_file=spec_file,
        url=url,
        github_file=github_file,
        existing=own,
        recorded=recorded,
    )
    refusals = (
        *find_refusals(context, facts, foreign),
        *_payload_refusals(context, files),
        *_size_refusals(context, files),
    )
    note = describe_delivery(context)
    return ColabObservation(facts, folder, own, recorded, refusals, files, code_note=note)


def observe_payload(observed: ColabObservation, reader: Reader, fetch: FetchFile) -> str:
    """Return why the cell cannot fetch its payload; "" if it can, or has it. May block.

    Raises:
        CloudError: the bucket cannot be read.
    """
    files = observed.rendered
    if files.payload_object:
        content = reader.cloud().object(files.payload_object, _MAX_PAYLOAD_BYTES)
        is_there = content is not None and hashlib.sha256(content).hexdigest() == files.sha256
        return "" if is_there else f"it is not in {files.payload_object}"
    if not files.github_addresses:
        return ""
    why = ""
    for address in files.github_addresses:
        try:
            content = fetch(address, _MAX_PAYLOAD_BYTES, reader.environment())
        except NetworkError as error:
            why = why or f"{error.what}: {error.why}"
            continue
        if hashlib.sha256(content).hexdigest() == files.sha256:
            return ""
        why = why or f"the file at {address} is a different one"
    return why


def get_spec_file_name(context: TargetContext, reader: Reader) -> str:
    """Return the file name of a target's spec."""
    short = f"{context.stem}.yml"
    return short if reader.exists(context.folder.parent / short) else f"{context.stem}.yaml"


def _size_refusals(context: TargetContext, files: RenderedFiles) -> Iterator[Refusal]:
    if files.oversize is not None or len(files.cell) > MAX_CELL_BYTES:
        why = f"the cell would be above the limit of {MAX_CELL_BYTES // 2**10} KiB"
        hint = (
            "set `bucket: gs://BUCKET/FOLDER` or `payload: repository` on the target, from where "
            "the cell then fetches its payload, or use `provision render SPEC --payload-url URL`"
        )
        if largest_files := str(files.oversize or ""):
            why += f"; the largest files in it: {largest_files}"
        if context.code is not None:
            hint = f"leave files out with `code.exclude`, or {hint}"
        yield Refusal(("targets", context.target), why, hint)


def _payload_refusals(context: TargetContext, files: RenderedFiles) -> Iterator[Refusal]:
    if get_colab_target(context).payload_place == "repository" and not files.url:
        yield Refusal(
            ("targets", context.target, "payload"),
            "`payload: repository` needs a repository on GitHub, and the spec's folder is not in a "
            "clone of one",
            "add the repository as the remote `origin`, or use `bucket` or `payload: embedded`",
        )


def find_refusals(
    context: TargetContext, facts: Facts, foreign: tuple[str, ...]
) -> Iterator[Refusal]:
    """Yield every refusal; `foreign` are files with our names that provision did not write."""
    yield from find_target_refusals(context.spec, context.target, facts)
    yield from _lock_refusals(context)
    for name in foreign:
        yield Refusal(
            ("targets", context.target),
            f"{name} exists and was not written by provision",
            "move it, or rename the spec",
        )


def _lock_refusals(context: TargetContext) -> Iterator[Refusal]:
    yield from refuse_untestable_gpu(context)
    if context.sandbox_sources is not None:
        yield Refusal(
            ("targets", context.target),
            "the sandbox does not emulate Colab",
            "select a different target with --target, or omit --sandbox",
        )
        return
    for name, address in context.lock.indexes.items():
        if address.startswith("file:") and name not in context.spec.indexes:
            yield Refusal(
                ("indexes",),
                f"the index {name} is on this machine, where the runtime cannot reach it",
                "use an index with an HTTP or HTTPS address",
            )
