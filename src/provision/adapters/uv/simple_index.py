"""Lists the files of packages on an index: JSON (PEP 691) or HTML (PEP 503), with limits."""

from __future__ import annotations

import http.client
import json
import queue
import re
import threading
import urllib.error
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from provision.adapters.uv.download import REFUSED_CODES, open_url
from provision.adapters.uv.local_index import hash_file
from provision.adapters.uv.resolution import default_index_url
from provision.adapters.uv.sources import package_of_wheel
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
    default = ""
    if any(not source.url and not source.wheels for _, source in questions):
        default = default_index_url(environment)
    for package, source in questions:
        waiting.put((package, source._replace(url=source.url or default)))
    arguments = (waiting, results, environment)
    for _ in range(min(_CONCURRENT_PAGES, len(questions))):
        threading.Thread(target=_run_worker, args=arguments, daemon=True).start()
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
    while not waiting.empty():
        with suppress(queue.Empty):  # another worker was faster
            package, source = waiting.get_nowait()
            try:
                files = list_package_files(package, source, environment)
                results.put(((package, source.name), files))
            except BaseException as error:  # noqa: BLE001
                results.put(((package, source.name), error))


def list_package_files(
    package: str, index: IndexSource, environment: Mapping[str, str]
) -> tuple[ListedFile, ...] | None:
    """Return the files of a package (canonical name), None if the index does not know it.

    `environment` is uv's: UV_HTTP_TIMEOUT (seconds for a page) and UV_HTTP_RETRIES apply.

    Raises:
        NetworkError: the index cannot be reached, refuses, is too slow, or its answer is
        unreadable.
    """
    if index.wheels:
        own = (wheel for wheel in index.wheels if package_of_wheel(wheel) == package)
        return tuple(ListedFile(wheel.name, hash_file(wheel)) for wheel in own)
    url = f"{index.url.rstrip('/')}/{package}/"
    if urlsplit(url).scheme == "file":
        url += "index.html"
    retries = environment.get("UV_HTTP_RETRIES", "")
    remaining = int(retries) if re.fullmatch(r"[0-9]{1,2}", retries) else _RETRIES
    while True:
        try:
            return _fetch_page(url, index, environment)
        except (OSError, http.client.HTTPException) as error:
            if _is_absent(error):
                return None
            is_refusal = isinstance(error, urllib.error.HTTPError) and error.code < 500
            if is_refusal or not remaining:
                raise _unreachable_error(url, index, error) from None
            remaining -= 1


def _fetch_page(
    url: str, index: IndexSource, environment: Mapping[str, str]
) -> tuple[ListedFile, ...]:
    timeout = environment.get("UV_HTTP_TIMEOUT", "")
    limit_s = float(timeout) if re.fullmatch(r"[1-9][0-9]{0,4}", timeout) else _TIMEOUT_S
    call = TimedCall(TimeLimits(limit_s))
    with open_url(url, index, environment, call, {"Accept": _ACCEPT}) as response:
        parts, length = [], 0
        while chunk := response.read(2**16):
            parts.append(chunk)
            length += len(chunk)
            if length > _LIMIT:
                raise _unreadable_error(url, index, f"its page is longer than {_LIMIT >> 20} MiB")
        expected = response.headers.get("Content-Length")
        if expected is not None and expected.isdigit() and length < int(expected):
            raise OSError(f"the response ended after {length} of {expected} bytes")
        kind = str(response.headers.get("Content-Type", "")).partition(";")[0].strip().lower()
    text = b"".join(parts).decode("utf-8", "replace")
    try:
        parse = _parse_json_page if kind.endswith("json") else _parse_html_page
        return tuple(parse(text, url))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _unreadable_error(url, index, f"its page is not a list of files: {error}") from None


def _parse_json_page(text: str, page: str) -> Iterator[ListedFile]:
    for row in json.loads(text)["files"]:
        sha256 = str(row.get("hashes", {}).get("sha256", "")).lower()
        yanked = row.get("yanked", False)
        reason = None
        if yanked is not False:
            reason = yanked if isinstance(yanked, str) else ""
        url = urljoin(page, str(row.get("url", "")))
        yield ListedFile(str(row["filename"]), sha256, reason, url)


def _parse_html_page(text: str, page: str) -> Iterator[ListedFile]:
    anchors = _LinkParser()
    anchors.feed(text)
    for row in anchors.links:
        address, fragment = urldefrag(row.get("href") or "")
        name = unquote(urlsplit(address).path).rpartition("/")[2]
        if name:
            algorithm, _, digest = fragment.partition("=")
            sha256 = digest.lower() if algorithm == "sha256" else ""
            yanked = (row["data-yanked"] or "") if "data-yanked" in row else None
            yield ListedFile(name, sha256, yanked, urljoin(page, address))


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
    if isinstance(error, urllib.error.HTTPError):
        return error.code in (404, 410)
    reason = getattr(error, "reason", None)  # of a URLError
    return isinstance(reason, FileNotFoundError | NotADirectoryError)


def _index_label(index: IndexSource) -> str:
    return "the default index" if index.name == "pypi" else f"index {index.name}"


def _unreachable_error(url: str, index: IndexSource, error: Exception) -> NetworkError:
    hint = (
        "check the network, the proxy and the certificates, or try again later; nothing was "
        "verified"
    )
    reason = getattr(error, "reason", error)
    problem, why = "could not be reached", redact(str(reason))
    if isinstance(error, urllib.error.HTTPError):
        problem, why = "refused the request", f"{error.code} {error.reason}"
        if error.code in REFUSED_CODES:
            hint = (
                "check the index's user name and password in pip's index-url, "
                "UV_INDEX_NAME_USERNAME and UV_INDEX_NAME_PASSWORD, or ~/.netrc"
            )
    elif isinstance(reason, TimeoutError):
        problem = "did not respond in time"
    return NetworkError(f"{_index_label(index)} {problem}", why=f"{redact(url)}: {why}", hint=hint)


def _unreadable_error(url: str, index: IndexSource, why: str) -> NetworkError:
    return NetworkError(
        f"{_index_label(index)} returned an unreadable response",
        why=f"{redact(url)}: {why}",
        hint="check that it is a package index (PEP 503)",
    )
