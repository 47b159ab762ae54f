"""Brings the project's code to a cell: by a clone of a public repository, or in an archive."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace

from provision.agent.core.code_clone import CLONE, CodeClone
from provision.agent.core.code_files import CodeError, CodeManifest
from provision.effects.code import CodeTree
from provision.effects.system import Reader
from provision.targets.colab import cell
from provision.targets.colab.file_names import CELL_SUFFIX
from provision.targets.colab.payload import decode_payload, encode_payload
from provision.targets.colab.records import NotebookRecord
from provision.targets.context import TargetContext


def with_code_delivery(
    context: TargetContext,
    existing: Mapping[str, bytes],
    reader: Reader,
    recorded: NotebookRecord | None = None,
) -> TargetContext:
    """Return a context whose code has the files for a payload.

    A notebook that brings the same code keeps its way and its commit: otherwise each commit, also
    that of the notebook itself, would make it out of date.

    Args:
        context: the target with its code.
        existing: the files that exist, by name.
        reader: finds the public copy of the code.
        recorded: what the state has of these files.
    """
    code, declared = context.code, context.spec.code
    if code is None or declared is None or code.problems:
        return context
    members: Mapping[str, bytes] = {}
    earlier, is_unedited = _find_earlier(existing, code.manifest, recorded)
    if isinstance(earlier, CodeManifest):
        code = replace(code, manifest=earlier)
    elif declared.clone:
        codes = reader.code()
        if earlier is None or not codes.may_have_copy(code, earlier, compare_files=not is_unedited):
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
    return encode_payload(code.describe_members(), max_bytes=sys.maxsize)


def _find_earlier(
    existing: Mapping[str, bytes], manifest: CodeManifest, recorded: NotebookRecord | None
) -> tuple[CodeClone | CodeManifest | None, bool]:
    """Return how an existing cell brings some code, and whether the cell is as it was recorded.

    For an archive that is the manifest with the commit of the cell. None if the cell does not bring
    this code, or contradicts its own payload, because somebody edited it.
    """
    for name, content in existing.items():
        if not name.endswith(CELL_SUFFIX):
            continue
        about = cell.parse_about(content.decode("utf-8", "replace")) or {}
        is_unedited = recorded is not None and recorded.matches(name, content)
        try:
            described = decode_payload(about["code"])
            document = json.loads(described)
            if document["digest"] != manifest.digest:
                continue
            payload = () if is_unedited else about["payload"]
            if payload and described not in decode_payload(payload):
                continue
            if "url" in document:
                return CodeClone.from_bytes(described), is_unedited
            commit, dirty = str(document["commit"]), document["dirty"] is True
            return replace(manifest, commit=commit, dirty=dirty), is_unedited
        except (ValueError, TypeError, KeyError, RecursionError, CodeError):
            continue
    return None, False
