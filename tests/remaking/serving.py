"""A package index on loopback that serves parts of files, and small wheels to put on it."""

from __future__ import annotations

import http.server
import io
import json
import re
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from packaging.utils import parse_wheel_filename

from remaking.index import File
from remaking.ranges import RangeFile


@dataclass
class Asked:
    """What a server was asked: path and range of each request."""

    address: str = ""
    requests: list[tuple[str, str]] = field(default_factory=list)


@contextmanager
def served(
    files: Mapping[str, bytes],
    *,
    ranges: bool = True,
    json_pages: bool = False,
    attributes: str = "",
) -> Iterator[Asked]:
    """Serve wheels by name as an index; without `ranges` every answer is the whole file."""
    asked = Asked()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = unquote(self.path.rstrip("/").rpartition("/")[2])
            asked.requests.append((self.path, self.headers.get("Range", "")))
            page = self.path.startswith("/simple/")
            content, kind = (
                (_page(files, name, json_pages, attributes))
                if page
                else (files.get(name), "application/octet-stream")
            )
            if content is None:
                self.send_error(404)
                return
            span = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
            start, end = 0, len(content)
            if ranges and span:
                start, end = (
                    (int(span[1]), int(span[2]) + 1)
                    if span[1]
                    else (max(0, len(content) - int(span[2])), len(content))
                )
            self.send_response(206 if ranges and span else 200)
            if ranges and span:
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(end - start))
            self.end_headers()
            self.wfile.write(content[start:end])

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    asked.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield asked
    finally:
        server.shutdown()
        server.server_close()


def _page(
    files: Mapping[str, bytes], project: str, json_page: bool, attributes: str
) -> tuple[bytes | None, str]:
    """The list of a project's files, as HTML (PEP 503) or JSON (PEP 691)."""
    names = [
        name
        for name in files
        if name.endswith(".whl") and name.partition("-")[0].replace("_", "-").lower() == project
    ]
    if not names:
        return None, ""
    if json_page:
        listed = [
            {
                "filename": name,
                "url": f"/files/{quote(name)}",
                "hashes": {},
                "upload-time": "2026-10-28T10:00:00Z",
                "yanked": False,
            }
            for name in names
        ]
        return json.dumps(
            {"meta": {"api-version": "1.1"}, "name": project, "files": listed}
        ).encode(), "application/vnd.pypi.simple.v1+json"
    links = "\n".join(f'<a href="/files/{quote(name)}" {attributes}>{name}</a>' for name in names)
    return f"<!DOCTYPE html><html><body>{links}</body></html>".encode(), "text/html"


def wheel(
    name: str,
    version: str,
    tag: str = "py3-none-any",
    *,
    head: str = "",
    members: Mapping[str, str | bytes] | None = None,
) -> dict[str, bytes]:
    """One small wheel, by its file name: METADATA with the lines in `head`, and further members."""
    stem = f"{name.replace('-', '_')}-{version}"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in (members or {}).items():
            archive.writestr(path, content)
        archive.writestr(
            f"{stem}.dist-info/METADATA",
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{head}\n",
        )
    return {f"{stem}-{tag}.whl": data.getvalue()}


def fetching(content: bytes) -> Callable[[str], tuple[bytes, int]]:
    """Answer ranges of `content` as a server does."""

    def fetch(span: str) -> tuple[bytes, int]:
        first, _, last = span.partition("-")
        start, end = (
            (int(first), int(last) + 1)
            if first
            else (max(0, len(content) - int(last)), len(content))
        )
        return content[start:end], len(content)

    return fetch


class Folder:
    """An index of wheels in memory."""

    def __init__(
        self, files: Mapping[str, bytes], metadata: Mapping[str, bytes] | None = None
    ) -> None:
        self.held, self.metadata, self.opened = files, metadata or {}, 0

    def wheels(self, package: str) -> list[File]:
        """The wheels of a package."""
        parsed = [(name, *parse_wheel_filename(name)) for name in self.held]
        address = {name: name if name in self.metadata else "" for name in self.held}
        return [
            File(name, name, version, tags, metadata=address[name])
            for name, project, version, _, tags in parsed
            if project == package
        ]

    def open(self, file: File) -> RangeFile:
        """A wheel as a file over ranges."""
        self.opened += 1
        return RangeFile(fetching(self.held[file.name]), block=256)

    def text(self, url: str) -> bytes:
        """A small file whole."""
        return self.metadata[url]


def copied(
    tables: Path, folder: Path, change: Callable[[str, str], str] = lambda _, text: text
) -> Path:
    """A copy of the fact tables, each changed by its name and text."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in tables.glob("*.yaml"):
        (folder / path.name).write_text(
            change(path.stem, path.read_text(encoding="utf-8")), encoding="utf-8"
        )
    return folder
