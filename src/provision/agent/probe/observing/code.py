"""Observes the files of the project's code by the list that came with them."""

from __future__ import annotations

import json
from pathlib import Path

from ...core.code_files import CodeError, CodeManifest, find_changed_files
from ..context import ObserverContext
from ..model import Readings

_MAX_NAMED = 20
_MAX_FILES = 200
"""Files whose digests are published one by one, so that a comparison can name a file. Our choice.
"""
_DIGITS = 12


def _files(context: ObserverContext) -> Readings:
    code = context.expected.code
    assert code is not None
    try:
        manifest = CodeManifest.from_json(json.loads(Path(code.manifest).read_bytes()))
    except ValueError:
        raise CodeError(f"{code.manifest} is not valid JSON") from None
    present, changed = find_changed_files(Path(code.folder), manifest)
    readings: Readings = {
        "code.digest": present.digest,
        "code.commit": manifest.commit or None,
        "code.dirty": manifest.dirty,
        "code.files": len(present.files),
        "code.changed": changed[:_MAX_NAMED],
    }
    if len(present.files) <= _MAX_FILES:
        readings |= {f"code.file.{file.path}": file.sha256[:_DIGITS] for file in present.files}
    return readings


OBSERVERS = {"V01": _files}
