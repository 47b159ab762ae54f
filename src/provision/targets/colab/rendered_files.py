"""Files of a Colab target: cell, notebook and payload, derived from spec, lock and facts."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

import provision
from provision.facts import Facts
from provision.kinds.colab import find_shape
from provision.spelling import format_command
from provision.targets.colab import cell, notebook
from provision.targets.colab.agent_config import build_agent_config, encode_config
from provision.targets.colab.code_delivery import describe_code
from provision.targets.colab.file_names import (
    CELL_SUFFIX,
    NOTEBOOK_SUFFIX,
    PAYLOAD_SUFFIX,
    build_file_stem,
    build_render_command,
    get_colab_target,
)
from provision.targets.colab.github_link import GithubFile
from provision.targets.colab.locations import (
    get_payload_object,
    list_github_addresses,
    split_report_location,
)
from provision.targets.colab.payload import (
    MAX_PAYLOAD_BYTES,
    PayloadTooLargeError,
    build_context_payload,
    digest_payload,
    digest_payload_inputs,
    encode_payload,
)
from provision.targets.colab.records import NotebookRecord
from provision.targets.context import TargetContext
from provision.targets.pinned_uv import read_pinned_uv


@dataclass(frozen=True, slots=True)
class RenderedFiles:
    """Content of a target's files: cell, notebook, the sha256 of the payload, and the nonce."""

    name: str
    nonce: str
    cell: str
    notebook: Mapping[str, Any]
    sha256: str
    inputs: str
    """A digest of what the payload is made from."""
    url: str
    """Where the file of the payload is fetched from; "" without such a file."""
    github_addresses: tuple[str, ...]
    """The addresses of that file in its repository; () if it is not there."""
    payload_object: str
    """The address of the payload in the bucket; "" if it is not there."""
    report: str
    """Where the cell copies the report to; "" for nowhere."""
    build_payload: Callable[[], bytes] = field(compare=False, repr=False)
    """Returns the payload; reads all files of the code, unless that was necessary before."""
    oversize: PayloadTooLargeError | None = field(default=None, compare=False)
    """Set if the payload is too large for a cell; the cell then lacks it."""

    @property
    def payload(self) -> bytes:
        """The payload."""
        return self.build_payload()

    @property
    def notebook_name(self) -> str:
        """The name of the notebook's file."""
        return self.name + NOTEBOOK_SUFFIX

    @property
    def payload_name(self) -> str:
        """The name of the payload's file, if it has its own file."""
        return self.name + PAYLOAD_SUFFIX

    @property
    def report_places(self) -> tuple[str, str]:
        """The object, or the file on Drive, that the report is copied to."""
        return split_report_location(self.report)

    def merge_files(self, existing: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the files by name, merged with those that exist.

        Up-to-date files keep their bytes, and additions by people stay.
        """
        files = {
            self.name + CELL_SUFFIX: _merge_cell(
                existing.get(self.name + CELL_SUFFIX), self.cell
            ).encode()
        }
        files[self.notebook_name] = _merge_notebook(existing.get(self.notebook_name), self.notebook)
        if self.url:
            files[self.payload_name] = self.payload
        return files

    def find_edited_copies(self, existing: Mapping[str, bytes]) -> tuple[str, ...]:
        """Return the names of the cells that the existing notebook has edited copies of."""
        return notebook.find_edited_copies(
            read_notebook(existing.get(self.notebook_name, b"")), self.notebook
        )


def list_file_names(context: TargetContext, url: str = "") -> tuple[str, ...]:
    """Return the names of the files of a target; with `url` the payload has its own file."""
    has_payload = url or get_colab_target(context).payload_place == "repository"
    endings = (CELL_SUFFIX, NOTEBOOK_SUFFIX, *((PAYLOAD_SUFFIX,) if has_payload else ()))
    return tuple(build_file_stem(context) + ending for ending in endings)


def render_files(
    context: TargetContext,
    facts: Facts,
    *,
    spec_file: str = "",
    nonce: str = "",
    url: str = "",
    github_file: GithubFile | None = None,
    existing: Mapping[str, bytes] = MappingProxyType({}),
    recorded: NotebookRecord | None = None,
    max_payload_bytes: int = MAX_PAYLOAD_BYTES,
) -> RenderedFiles:
    """Return the files of a target.

    Args:
        context: the target with its lock.
        facts: the tables to look up.
        spec_file: the spec's name for people.
        nonce: the request that the report answers; "" for the one of the declaration.
        url: the address of a payload outside the cell, in place of the declared one.
        github_file: the file of the payload on GitHub, for `payload: repository`.
        existing: the files that exist, by name.
        recorded: what the state has of them, so that an unchanged payload is not packed again.
        max_payload_bytes: the largest payload that a cell may contain, compressed.
    """
    spec_file = spec_file or f"{context.stem}.yaml"
    document = build_agent_config(context, facts, read_pinned_uv(), nonce)
    content, name = encode_config(document), build_file_stem(context)
    build_payload = functools.cache(lambda: build_context_payload(content, context))
    inputs = digest_payload_inputs(content, context)
    current = existing.get(name + CELL_SUFFIX, b"")
    kept_sha256 = _find_kept_payload(name, current, recorded, inputs)
    sha256 = kept_sha256 or digest_payload(build_payload())
    about = build_about(context, facts, document, spec_file, sha256, url)
    place = "" if url else get_colab_target(context).payload_place
    addresses = [url] if url else []
    if place in ("bucket", "repository"):
        addresses = _list_addresses(context, document["nonce"], sha256, github_file, build_payload)
    lines: Sequence[str] = ()
    oversize = None
    if addresses:
        about["embed"] = _describe_embedding(context, spec_file)
    else:
        lines, oversize = _encode(current, build_payload, max_payload_bytes, keep=bool(kept_sha256))
    code = describe_code(context.code) if context.code is not None else ()
    text = cell.render_cell(about, lines, addresses, code)
    return RenderedFiles(
        name,
        document["nonce"],
        text,
        _notebook(context, facts, about, text),
        sha256,
        inputs,
        addresses[0] if addresses and place != "bucket" else "",
        tuple(addresses) if place == "repository" else (),
        addresses[0] if place == "bucket" else "",
        document["report"] or "",
        build_payload,
        oversize,
    )


def _list_addresses(
    context: TargetContext,
    nonce: str,
    sha256: str,
    github_file: GithubFile | None,
    build_payload: Callable[[], bytes],
) -> list[str]:
    """Return where the cell fetches its payload from; [] if it contains the payload."""
    place = get_colab_target(context).payload_place
    if place == "bucket":
        return [get_payload_object(context, nonce, sha256)]
    if place == "repository" and github_file is not None:
        return list_github_addresses(github_file, build_payload())
    return []


def _encode(
    current: bytes, build_payload: Callable[[], bytes], max_bytes: int, *, keep: bool
) -> tuple[Sequence[str], PayloadTooLargeError | None]:
    """Return the payload as lines of text; with `keep` those of the existing cell if it has any."""
    about = cell.parse_about(current.decode("utf-8", "replace")) or {}
    earlier: Sequence[str] = about.get("payload", ())
    if keep and earlier:
        return earlier, None
    try:
        return encode_payload(build_payload(), earlier, max_bytes), None
    except PayloadTooLargeError as error:
        return (), error


def _find_kept_payload(
    name: str, current: bytes, recorded: NotebookRecord | None, inputs: str
) -> str:
    """Return the sha256 of the recorded payload, "" if it has to be built to know it.

    It is known if the existing cell is as recorded, and the payload is made from the same.
    """
    if recorded is None or recorded.inputs != inputs:
        return ""
    return recorded.payload if recorded.matches(name + CELL_SUFFIX, current) else ""


def build_about(
    context: TargetContext,
    facts: Facts,
    document: Mapping[str, Any],
    spec_file: str,
    sha256: str,
    url: str = "",
) -> dict[str, Any]:
    """Return the description of a cell for people."""
    return {
        "what": f"environment {context.spec.name}: {', '.join(_contents(context, document))}",
        "for": ", ".join(_machine(context, facts, document)),
        "spec": spec_file,
        "target": context.target,
        "lock": context.lock.digest,
        "nonce": document["nonce"],
        "made_by": f"provision {provision.__version__}",
        "make_again": build_render_command(context, spec_file, url),
        "payload_sha256": sha256,
    }


def _describe_embedding(context: TargetContext, spec_file: str) -> str:
    """Return how to render a cell that contains its payload."""
    command = format_command("render", PurePath(spec_file), context.target)
    if get_colab_target(context).payload_place == "embedded":
        return f"put the payload into the cell: {command}"
    setting = f"set `payload: embedded` on target `{context.target}`"
    return f"put the payload into the cell: {setting}, then {command}"


def _contents(context: TargetContext, document: Mapping[str, Any]) -> Iterator[str]:
    versions = context.lock.versions(context.environment)
    yield f"Python {document['python']}"
    yield f"{len(versions)} packages"
    if "torch" in versions:
        yield f"torch {versions['torch']}"
    yield (
        "on top of the runtime's packages"
        if document["isolation"] == "system"
        else "separate from the runtime's packages"
    )


def _machine(context: TargetContext, facts: Facts, document: Mapping[str, Any]) -> Iterator[str]:
    target, gpu, runtime = get_colab_target(context), context.spec.gpu, document["runtime"]
    details = (
        f" (Python {runtime['python']}, torch {runtime['torch']}, as of {runtime['as_of']})"
        if runtime
        else ""
    )
    yield f"Colab runtime {target.runtime}{details}"
    shape = find_shape(gpu, target.shape, facts)
    yield "no GPU" if gpu.is_none else f"GPU {gpu.type}"
    if shape is not None and shape.shape == "high":
        yield "high RAM"


def _notebook(
    context: TargetContext, facts: Facts, about: Mapping[str, Any], text: str
) -> dict[str, Any]:
    shape = find_shape(context.spec.gpu, get_colab_target(context).shape, facts)
    digest = {"payload_sha256": about["payload_sha256"]}
    texts = {
        notebook.ENVIRONMENT_CELL: text,
        notebook.VERIFY_CELL: cell.fill_template(cell.read_template("verify"), digest),
    }
    if get_colab_target(context).isolation == "venv":
        texts[notebook.RUN_CELL] = cell.fill_template(cell.read_template("run"), digest)
    lines = {
        "spec": f"{about['spec']}, target {about['target']}",
        "for": about["for"],
        "rendered with": about["make_again"],
    }
    introduction = (
        "The first cell checks the machine, installs the locked packages and verifies the "
        "environment; the second cell shows the report. Run both with Run all."
    )
    title = f"Environment {notebook.format_code(context.spec.name)}"
    return notebook.build_notebook(
        notebook.build_metadata(get_colab_target(context), shape.metadata if shape else {}),
        notebook.format_markdown(lines, title, introduction),
        texts,
    )


def _merge_cell(existing: bytes | None, text: str) -> str:
    current = existing.decode("utf-8", "replace") if existing is not None else ""
    return current if cell.is_same_cell(current, text) else text


def _merge_notebook(existing: bytes | None, ours: Mapping[str, Any]) -> bytes:
    if (
        existing is None
        or (document := read_notebook(existing)) is None
        or not notebook.is_rendered_notebook(document)
    ):
        return notebook.dumps(ours).encode()
    fresh = notebook.update_notebook(document, ours)
    return existing if fresh == document else notebook.dumps(fresh).encode()


def read_notebook(content: bytes) -> Any:
    """Return the document in a notebook's bytes; None if there is none."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def is_foreign_file(name: str, content: bytes) -> bool:
    """Return whether provision did not write a file with one of our names."""
    if name.endswith(PAYLOAD_SUFFIX):
        return not content.startswith(b"PK")
    if name.endswith(NOTEBOOK_SUFFIX):
        return not notebook.is_rendered_notebook(read_notebook(content))
    return cell.parse_about(content.decode("utf-8", "replace")) is None
