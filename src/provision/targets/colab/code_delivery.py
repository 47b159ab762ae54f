"""Brings the project's code to a cell: by a clone of a public repository, or in an archive."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import replace

from provision.agent.core.code_clone import CLONE, CodeClone
from provision.agent.core.code_files import (
    ARCHIVE,
    MANIFEST,
    CodeError,
    CodeManifest,
    pack_code,
)
from provision.effects.system import Reader
from provision.targets.colab import cell
from provision.targets.colab.file_names import CELL_SUFFIX, PAYLOAD_SUFFIX
from provision.targets.context import TargetContext


def with_code_delivery(
    context: TargetContext, existing: Mapping[str, bytes], reader: Reader
) -> TargetContext:
    """Return a context whose code has the files for a payload.

    A notebook that brings the same code keeps its way: otherwise each commit, also that of the
    notebook itself, would make it out of date.
    """
    code, declared = context.code, context.spec.code
    if code is None or declared is None or code.problems:
        return context
    members = None
    earlier = _find_earlier(existing, code.digest)
    if isinstance(earlier, CodeManifest):
        # Nothing else of the archive is taken over: somebody may have changed the cell.
        manifest = replace(code.manifest, commit=earlier.commit, dirty=earlier.dirty)
        members = {ARCHIVE: pack_code(manifest, code.contents)}
    elif declared.clone:
        codes = reader.code()
        if earlier is None or earlier.url not in codes.list_public_addresses(code):
            earlier = codes.find_public_copy(code)
        members = {CLONE: earlier.to_bytes()} if earlier is not None else None
    return replace(context, code=replace(code, members=members or {}))


def describe_delivery(context: TargetContext) -> str:
    """Return the way of the code for plans; "" without code."""
    code = context.code
    if code is None or code.problems:
        return ""
    if CLONE not in code.members:
        return "code: in the notebook"
    clone = CodeClone.from_bytes(code.members[CLONE])
    return f"code: cloned by the notebook from {clone.url}, commit {clone.commit[:12]}"


def _find_earlier(existing: Mapping[str, bytes], digest: str) -> CodeClone | CodeManifest | None:
    """Return how an existing payload brings code with a digest; None if it does not."""
    for name, content in existing.items():
        try:
            payload = content
            if name.endswith(CELL_SUFFIX):
                about = cell.parse_about(content.decode("utf-8", "replace")) or {}
                payload = cell.decode_payload(about.get("payload") or ())
            elif not name.endswith(PAYLOAD_SUFFIX):
                continue
            with zipfile.ZipFile(io.BytesIO(payload)) as archive:
                for member in {CLONE, ARCHIVE} & set(archive.namelist()):
                    found = _read_member(member, archive.read(member))
                    if found.digest == digest:
                        return found
        except (ValueError, TypeError, KeyError, zipfile.BadZipFile, CodeError):
            continue
    return None


def _read_member(member: str, content: bytes) -> CodeClone | CodeManifest:
    if member == CLONE:
        return CodeClone.from_bytes(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return CodeManifest.from_json(json.loads(archive.read(MANIFEST)))
