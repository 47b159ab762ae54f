"""Brings the project's code to a cell: by a clone of a public repository, or in an archive."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from provision.agent.core.code_clone import CLONE, CodeClone
from provision.agent.core.code_files import ARCHIVE, MANIFEST, CodeError, CodeManifest
from provision.effects.code import CodeTree
from provision.effects.system import Reader
from provision.targets.colab import cell
from provision.targets.colab.file_names import CELL_SUFFIX
from provision.targets.context import TargetContext


def with_code_delivery(
    context: TargetContext,
    existing: Mapping[str, bytes],
    reader: Reader,
    recorded_payload: str = "",
) -> TargetContext:
    """Return a context whose code has the files for a payload.

    A notebook that brings the same code keeps its way and its commit: otherwise each commit, also
    that of the notebook itself, would make it out of date.

    Args:
        context: the target with its code.
        existing: the files that exist, by name.
        reader: finds the public copy of the code.
        recorded_payload: the sha256 of the payload that was rendered here last; "" for none.
    """
    code, declared = context.code, context.spec.code
    if code is None or declared is None or code.problems:
        return context
    members: Mapping[str, bytes] = {}
    earlier = _find_earlier(existing, code.manifest)
    if isinstance(earlier, CodeManifest):
        code = replace(code, manifest=earlier)
        members = _take_archive(existing, earlier, recorded_payload)
    elif declared.clone:
        codes = reader.code()
        if earlier is None or not codes.may_have_copy(code, earlier):
            earlier = codes.find_public_copy(code)
        members = {CLONE: earlier.to_bytes()} if earlier is not None else {}
    return replace(context, code=replace(code, members=members))


def describe_delivery(context: TargetContext) -> str:
    """Return the way of the code for plans; "" without code."""
    code = context.code
    if code is None or code.problems:
        return ""
    if CLONE not in code.members:
        return "code: in the notebook"
    clone = CodeClone.from_bytes(code.members[CLONE])
    return f"code: cloned by the notebook from {clone.url}, commit {clone.commit[:12]}"


def describe_code(code: CodeTree) -> tuple[str, ...]:
    """Return what a cell records of its code, as lines: digest, commit, and for a clone its source.

    The payload has the same, but it is not next to the cell if the cell fetches it from a bucket.
    It is compressed, because a clone lists the files that are left out.
    """
    manifest = code.manifest
    packed = {"digest": manifest.digest, "commit": manifest.commit, "dirty": manifest.dirty}
    content = code.members.get(CLONE) or json.dumps(packed, sort_keys=True).encode()
    return cell.encode_payload(content)


def _find_earlier(
    existing: Mapping[str, bytes], manifest: CodeManifest
) -> CodeClone | CodeManifest | None:
    """Return how an existing cell brings some code; None if it does not.

    For an archive that is the manifest with the commit of the cell. Nothing else of it is taken
    over: somebody may have changed the cell.
    """
    for about in _list_abouts(existing):
        try:
            recorded = cell.decode_payload(about["code"])
            document = json.loads(recorded)
            if document["digest"] != manifest.digest:
                continue
            if "url" in document:
                return CodeClone.from_bytes(recorded)
            return replace(
                manifest, commit=str(document["commit"]), dirty=document["dirty"] is True
            )
        except (ValueError, TypeError, KeyError, RecursionError, CodeError):
            continue
    return None


def _take_archive(
    existing: Mapping[str, bytes], manifest: CodeManifest, payload_sha256: str
) -> Mapping[str, bytes]:
    """Return the archive in an existing cell whose payload has the given sha256; {} without one.

    Such an archive was packed here, and is the same: packing it again would read every file.
    """
    for about in _list_abouts(existing):
        with suppress(ValueError, TypeError, KeyError, zipfile.BadZipFile):
            payload = cell.decode_payload(about["payload"])
            if cell.digest_payload(payload) != payload_sha256:
                continue
            with zipfile.ZipFile(io.BytesIO(payload)) as members:
                content = members.read(ARCHIVE)
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                if json.loads(archive.read(MANIFEST)) == manifest.to_json():
                    return {ARCHIVE: content}
    return {}


def _list_abouts(existing: Mapping[str, bytes]) -> Iterator[Mapping[str, Any]]:
    """Yield the documents of existing cells."""
    for name, content in existing.items():
        if name.endswith(CELL_SUFFIX):
            yield cell.parse_about(content.decode("utf-8", "replace")) or {}
