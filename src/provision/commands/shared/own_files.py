"""Files of a project that are neither its code nor part of a package in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from glob import escape
from pathlib import Path

from provision.commands.shared.foreign_files import (
    declares_api_version,
    has_spec_keys,
    has_spec_name,
)
from provision.commands.shared.load import LoadedSpec, lock_path
from provision.effects.system import Reader
from provision.errors import ExternalError
from provision.spec import Spec

_MAX_SPEC_BYTES = 2**20
_SUFFIXES = (".yaml", ".yml")


def list_own_files(loaded: LoadedSpec, folder: Path, reader: Reader) -> tuple[str, ...]:
    """Return patterns of the files below a folder that belong neither to code nor to a package.

    These are the spec, the files that it extends, other specs next to it, the lock of each, and the
    files that the command of the verification writes.
    """
    home = loaded.path.resolve().parent
    paths = [home / loaded.path.name, home / loaded.lock_path.name]
    paths += [Path(name).resolve() for name in loaded.source.texts]
    if home.is_relative_to(folder):
        paths += _find_other_specs(home, reader)
    paths += _list_written_files(loaded.spec, home)
    relative = (Path(os.path.relpath(path, folder)) for path in dict.fromkeys(paths))
    return tuple(f"/{escape(str(path))}" for path in relative if path.parts[0] != os.pardir)


def _find_other_specs(home: Path, reader: Reader) -> Iterator[Path]:
    """Yield the specs in a folder and the lock of each, which may not exist yet."""
    for name in reader.list_folder(home):
        path = home / name
        if path.suffix in _SUFFIXES and _is_spec(path, reader):
            yield from (path, lock_path(path))


def _is_spec(path: Path, reader: Reader) -> bool:
    """Return whether a file is a spec by its name or its keys; it may have errors."""
    try:
        text = reader.read(path, _MAX_SPEC_BYTES).decode("utf-8", "replace")
    except ExternalError:
        return False
    return has_spec_name(path) or declares_api_version(text) or has_spec_keys(text)


def _list_written_files(spec: Spec, home: Path) -> list[Path]:
    """Return the files that the command writes into the project."""
    code = spec.code
    if code is None or code.git is not None:
        return []  # it starts in a temporary folder, or in our own
    files = spec.verify.expect.files
    return [home / code.path / path for path in files if not path.startswith(("/", "$"))]
