"""The default package index of this machine, asked through pip itself: what its configuration says
of index, proxy and certificates holds here too.

pip's `find-links` and `extra-index-url` are not asked: the tables speak of what the one index
serves.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from packaging.tags import Tag
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version
from pip._internal.commands import create_command
from pip._internal.exceptions import PipError
from pip._internal.index.collector import LinkCollector, parse_links
from pip._internal.models.link import Link
from pip._vendor.requests import RequestException

from remaking.ranges import RangeFile


class Unreachable(Exception):
    """The index cannot be asked, or does not answer as an index does; the text is for a person."""


@dataclass(frozen=True, slots=True)
class File:
    """A wheel on an index: `metadata` is the address of its METADATA file (PEP 658), `uploaded` a
    day such as "2026-10-28"; "" where the index has none.
    """

    name: str
    url: str
    version: Version
    tags: frozenset[Tag]
    yanked: bool = False
    metadata: str = ""
    uploaded: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A source distribution on an index; `uploaded` as of a wheel."""

    name: str
    url: str
    version: Version
    yanked: bool = False
    uploaded: str = ""


class Index(Protocol):
    """What the scripts ask of an index."""

    def wheels(self, package: str) -> list[File]:
        """Return the wheels of a package, [] when the index has none."""

    def sources(self, package: str) -> list[Source]:
        """Return the source distributions of a package, [] when the index has none."""

    def open(self, file: File) -> RangeFile:
        """Return a wheel as a file of which only the parts that are read are fetched."""

    def text(self, url: str) -> bytes:
        """Return a small file whole."""


class PipIndex:
    """The index that `pip install` would ask first here. `received` counts the bytes of all
    answers.
    """

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        """Make a session as `pip download` with `arguments` would: its configuration, its
        certificates, its retries.
        """
        self.received = 0
        logging.getLogger("pip").setLevel(logging.CRITICAL)
        command: Any = create_command("download", isolated="--isolated" in arguments)
        self._options, _ = command.parse_args([*arguments])
        self._session = command._build_session(self._options)
        self._collector = LinkCollector.create(self._session, self._options)

    @property
    def url(self) -> str:
        """The address of the index."""
        return str(self._options.index_url)

    def wheels(self, package: str) -> list[File]:
        """Ask for the list of a package's files (PEP 503 or 691)."""
        return [file for link in self._links(package) if (file := _file(link)) is not None]

    def sources(self, package: str) -> list[Source]:
        """Ask for the same list."""
        return [found for link in self._links(package) if (found := _source(link)) is not None]

    def _links(self, package: str) -> list[Link]:
        if self._options.no_index:
            raise Unreachable("pip's configuration says no-index")
        try:
            page = self._collector.fetch_response(
                Link(f"{self._options.index_url.rstrip('/')}/{canonicalize_name(package)}/")
            )
        except (PipError, RequestException, OSError) as error:
            raise Unreachable(
                f"the package index does not answer for {package}: {type(error).__name__}"
            ) from error
        if page is None:
            raise Unreachable(f"the package index does not answer for {package}")
        self.received += len(page.content)
        return list(parse_links(page))

    def open(self, file: File) -> RangeFile:
        """Open a wheel; only its end is fetched now."""
        return RangeFile(lambda span: self._range(file.url, span))

    def text(self, url: str) -> bytes:
        """Fetch a small file whole."""
        return bytes(self._get(url, {}).content)

    def _range(self, url: str, span: str) -> tuple[bytes, int]:
        answer = self._get(url, {"Range": f"bytes={span}", "Accept-Encoding": "identity"})
        if answer.status_code == 206:
            return answer.content, int(answer.headers["content-range"].rpartition("/")[2])
        if span.startswith("-") and int(answer.headers.get("content-length", 1 << 40)) <= int(
            span[1:]
        ):
            return answer.content, len(answer.content)
        raise Unreachable("the package index does not serve parts of files (HTTP ranges)")

    def _get(self, url: str, headers: dict[str, str]) -> Any:
        """Return an answer whose body is not read yet where it is not a part."""
        try:
            answer = self._session.get(url, headers=headers, stream=True)
            answer.raise_for_status()
            if answer.status_code == 206 or not headers:
                self.received += len(answer.content)
        except (PipError, RequestException, OSError) as error:
            raise Unreachable(
                f"the package index does not give {url.rpartition('/')[2]}: {type(error).__name__}"
            ) from error
        return answer


def _source(link: Link) -> Source | None:
    try:
        _, version = parse_sdist_filename(re.sub(r"\.tar\.bz2$|\.tgz$", ".tar.gz", link.filename))
    except InvalidSdistFilename:
        return None
    yanked, uploaded = link.yanked_reason is not None, link.upload_time
    day = uploaded.date().isoformat() if uploaded else ""
    return Source(link.filename, link.url_without_fragment, version, yanked, day)


def _file(link: Link) -> File | None:
    try:
        _, version, _, tags = parse_wheel_filename(link.filename)
    except InvalidWheelFilename:
        return None
    metadata, uploaded = link.metadata_link(), link.upload_time
    return File(
        name=link.filename,
        url=link.url_without_fragment,
        version=version,
        tags=tags,
        yanked=link.yanked_reason is not None,
        metadata=metadata.url_without_fragment if metadata else "",
        uploaded=uploaded.date().isoformat() if uploaded else "",
    )
