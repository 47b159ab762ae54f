"""Finds and downloads files of a package index (PEP 503) without an installer."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from ..core.timed_http import DEFAULT_LIMITS, TimedCall, TimedHandler, write_body

_MAX_PAGE_BYTES = 8 << 20


def find_default_index() -> str:
    """Return the address of the index that pip uses if none is set; "" without pip.

    Source: pip, src/pip/_internal/models/index.py.
    """
    try:
        return str(import_module("pip._internal.models.index").PyPI.simple_url)
    except (ImportError, AttributeError):
        return ""


class DownloadFailed(Exception):
    """A file cannot be downloaded; the text is the reason, without any address."""


def list_links(index: str, package: str) -> list[str]:
    """Return the addresses that the page of a package links to. Raises DownloadFailed, OSError."""
    page = _Links(f"{index.rstrip('/')}/{package}/")
    page.feed(read_address(page.address, _MAX_PAGE_BYTES).decode("utf-8", "replace"))
    return page.links


def read_address(address: str, limit: int) -> bytes:
    """Return the content of an address. Raises DownloadFailed, OSError."""
    with _open(address) as answer:
        content: bytes = answer.read(limit + 1)
    if len(content) > limit:
        raise DownloadFailed(f"a response from the index is larger than {limit >> 20} MiB")
    return content


def download_file(index: str, package: str, name: str, sha256: str, path: Path) -> None:
    """Write a file of a package to a path.

    No credentials are sent: files of an index that requires them are left to the installer.

    Raises:
        DownloadFailed: the index does not offer it, or its content has another sha256.
        OSError: the index cannot be reached, or the file cannot be written.
    """
    address = _find_address(list_links(index, package), name, sha256)
    with _open(address) as answer:
        digest = write_body(path, answer)
    if digest != sha256:
        raise DownloadFailed("the file on the index does not match the lock")


class _Links(HTMLParser):
    """The addresses that a page of an index links to."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address, self.links = address, list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Add the address of a link."""
        if tag == "a" and (link := dict(attrs).get("href")):
            self.links.append(urljoin(self.address, link))


def _find_address(links: list[str], name: str, sha256: str) -> str:
    """Return the address of a file by the hash that the index lists, else by its name."""
    for link in links:
        address, fragment = urldefrag(link)
        algorithm, _, value = fragment.partition("=")
        if algorithm == "sha256" and value != sha256:
            continue
        if algorithm == "sha256" or unquote(address.rsplit("/", 1)[-1]) == name:
            return address
    raise DownloadFailed("the index does not list the file")


@contextmanager
def _open(address: str) -> Iterator[Any]:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https"):
        raise DownloadFailed("the index address does not start with http:// or https://")
    if "@" in parts.netloc:
        raise DownloadFailed("the index address contains credentials")
    opener = urllib.request.build_opener(TimedHandler(TimedCall()))
    request = urllib.request.Request(address, headers={"Accept": "text/html, */*"})
    try:
        with opener.open(request, timeout=DEFAULT_LIMITS.whole_s) as answer:
            yield answer
    except urllib.error.HTTPError as error:
        raise DownloadFailed(f"the index responded with HTTP {error.code}") from None
    except http.client.HTTPException as error:
        raise DownloadFailed(f"the response of the index is malformed: {error!r:.100}") from None
