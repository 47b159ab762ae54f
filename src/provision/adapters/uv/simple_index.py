"""Lists the files of packages on an index: JSON (PEP 691) or HTML (PEP 503), with limits."""

from __future__ import annotations

import http.client
import json
import queue
import re
import threading
import urllib.error
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

from packaging.utils import canonicalize_name

from provision.adapters.uv.download import open_url
from provision.adapters.uv.local_index import hash_file
from provision.adapters.uv.resolution import default_index_url
from provision.agent.core.timed_http import TimedCall, TimeLimits
from provision.effects.packages import IndexSource, ListedFile
from provision.errors import NetworkError
from provision.sanitize import redact

_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
_LIMIT = 64 * 2**20
"""Longest page in bytes. The longest on the public index has about 30 MB."""
_TIMEOUT_S = 60.0
_RETRIES = 2
_CONCURRENT_PAGES = 8
"""Pages that are fetched at once. Our choice."""


FileList = tuple[ListedFile, ...] | None
_Result = tuple[tuple[str, str], FileList | BaseException]


def list_files_of_packages(
    questions: Sequence[tuple[str, IndexSource]], environment: Mapping[str, str]
) -> Mapping[tuple[str, str], FileList]:
    """Return the files of packages, by (package, index name), with several requests at once.

    Raises as `list_package_files` does.
    """
    waiting: queue.SimpleQueue[tuple[str, IndexSource]] = queue.SimpleQueue()
    results: queue.SimpleQueue[_Result] = queue.SimpleQueue()
    default = (
        default_index_url(environment)
        if any(not source.url and not source.wheels for _, source in questions)
        else ""
    )
    for package, source in questions:
        waiting.put((package, source._replace(url=source.url or default)))
    for _ in range(min(_CONCURRENT_PAGES, len(questions))):
        threading.Thread(
            target=_run_worker, args=(waiting, results, environment), daemon=True
        ).start()
    files: dict[tuple[str, str], FileList] = {}
    for _ in questions:
        key, response = results.get()
        if isinstance(response, BaseException):
            raise response
        files[key] = response
    return files


def _run_worker(
    waiting: queue.SimpleQueue[tuple[str, IndexSource]],
    results: queue.SimpleQueue[_Result],
    environment: Mapping[str, str],
) -> None:
    while True:
        try:
            package, source = waiting.get_nowait()
        except queue.Empty:
            return
        key = (package, source.name)
        try:
            results.put(
                (
                    key,
                    _files_on_disk(package, source.wheels)
                    if source.wheels
                    else list_package_files(package, source, environment),
                )
            )
        except BaseException as error:  # noqa: BLE001
            results.put((key, error))


def _files_on_disk(package: str, wheels: tuple[Path, ...]) -> tuple[ListedFile, ...]:
    of_package = [
        wheel for wheel in wheels if canonicalize_name(wheel.name.partition("-")[0]) == package
    ]
    return tuple(ListedFile(wheel.name, hash_file(wheel)) for wheel in of_package)


def list_package_files(
    package: str, index: IndexSource, environment: Mapping[str, str]
) -> tuple[ListedFile, ...] | None:
    """Return the files of a package (canonical name), None if the index does not know it.

    `environment` is uv's: UV_HTTP_TIMEOUT (seconds for a page) and UV_HTTP_RETRIES apply.

    Raises:
        NetworkError: the index cannot be reached, refuses, is too slow, or its answer is
        unreadable.
    """
    url = _address(package, index)
    attempts = 1 + _retries(environment)
    for attempt in range(1, attempts + 1):
        try:
            files = _fetch_page(url, index, environment)
        except (OSError, http.client.HTTPException) as error:
            if _is_absent(error):
                return None
            if attempt == attempts or (
                isinstance(error, urllib.error.HTTPError) and error.code < 500
            ):
                raise _unreachable(url, index, error) from None
        else:
            return files
    raise AssertionError


def _address(package: str, index: IndexSource) -> str:
    url = f"{index.url.rstrip('/')}/{package}/"
    return f"{url}index.html" if urlsplit(url).scheme == "file" else url


def _fetch_page(
    url: str, index: IndexSource, environment: Mapping[str, str]
) -> tuple[ListedFile, ...]:
    with open_url(
        url,
        index,
        environment,
        TimedCall(TimeLimits(_page_timeout_s(environment))),
        {"Accept": _ACCEPT},
    ) as response:
        parts, length = [], 0
        while chunk := response.read(2**16):
            parts.append(chunk)
            length += len(chunk)
            if length > _LIMIT:
                raise _unreadable(url, index, f"its page is longer than {_LIMIT >> 20} MiB")
        expected = response.headers.get("Content-Length")
        if expected is not None and expected.isdigit() and length < int(expected):
            raise OSError(f"the answer ended after {length} of {expected} bytes")
        kind = str(response.headers.get("Content-Type", "")).partition(";")[0].strip().lower()
    text = b"".join(parts).decode("utf-8", "replace")
    try:
        return tuple(_parse_json_page(text) if kind.endswith("json") else _parse_html_page(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _unreadable(url, index, f"its page is not a list of files: {error}") from None


def _parse_json_page(text: str) -> Iterator[ListedFile]:
    for row in json.loads(text)["files"]:
        sha256 = str(row.get("hashes", {}).get("sha256", "")).lower()
        yanked = row.get("yanked", False)
        reason = None
        if yanked is not False:
            reason = yanked if isinstance(yanked, str) else ""
        yield ListedFile(str(row["filename"]), sha256, reason)


def _parse_html_page(text: str) -> Iterator[ListedFile]:
    anchors = _LinkParser()
    anchors.feed(text)
    for row in anchors.links:
        address, fragment = urldefrag(row.get("href") or "")
        name = unquote(urlsplit(address).path).rpartition("/")[2]
        if name:
            algorithm, _, digest = fragment.partition("=")
            sha256 = digest.lower() if algorithm == "sha256" else ""
            yanked = (row["data-yanked"] or "") if "data-yanked" in row else None
            yield ListedFile(name, sha256, yanked)


class _LinkParser(HTMLParser):
    """Collects the attributes of links."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one link."""
        if tag == "a":
            self.links.append(dict(attrs))


def _is_absent(error: Exception) -> bool:
    reason: Any = getattr(error, "reason", error)
    return (isinstance(error, urllib.error.HTTPError) and error.code in (404, 410)) or (
        isinstance(error, urllib.error.URLError)
        and isinstance(reason, FileNotFoundError | NotADirectoryError)
    )


def _page_timeout_s(environment: Mapping[str, str]) -> float:
    text = environment.get("UV_HTTP_TIMEOUT", "")
    return float(text) if re.fullmatch(r"[1-9][0-9]{0,4}", text) else _TIMEOUT_S


def _retries(environment: Mapping[str, str]) -> int:
    text = environment.get("UV_HTTP_RETRIES", "")
    return int(text) if re.fullmatch(r"[0-9]{1,2}", text) else _RETRIES


def _index_label(index: IndexSource) -> str:
    return "the default index" if index.name == "pypi" else f"index {index.name}"


def _unreachable(url: str, index: IndexSource, error: Exception) -> NetworkError:
    hint = "check network, proxy and certificates, or try again later: nothing is verified"
    if isinstance(error, urllib.error.HTTPError):
        if error.code in (401, 403, 407):
            hint = (
                "check user name and password of the index, in pip's index-url, "
                "UV_INDEX_NAME_USERNAME and UV_INDEX_NAME_PASSWORD, or ~/.netrc"
            )
        return NetworkError(
            f"{_index_label(index)} refused the question",
            why=f"{redact(url)}: {error.code} {error.reason}",
            hint=hint,
        )
    reason = getattr(error, "reason", error)
    late = isinstance(reason, TimeoutError)
    what = (
        f"{_index_label(index)} did not answer in time"
        if late
        else f"{_index_label(index)} could not be reached"
    )
    return NetworkError(what, why=f"{redact(url)}: {redact(str(reason))}", hint=hint)


def _unreadable(url: str, index: IndexSource, why: str) -> NetworkError:
    return NetworkError(
        f"{_index_label(index)} gave an answer that cannot be read",
        why=f"{redact(url)}: {why}",
        hint="check that it is a package index (PEP 503)",
    )
