"""Collects the content of a file while a reader goes through it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from packaging.markers import Marker

from provision.diagnostics import Route, Span
from provision.facts import Facts, cuda_of, load_facts
from provision.imports.model import (
    ImportedFile,
    ImportedPackage,
    Leftover,
    LeftoverKind,
    Setting,
    SourceText,
)
from provision.imports.quoting import quote_text

_DEFAULT_INDEX = re.compile(r"(?:pypi|pypi\.python|files\.pythonhosted)\.org")
"""Hosts of the default package index and of its files."""
VARIABLE = re.compile(r"\$\{[^}\s]*\}|\$[A-Za-z_]\w*|%\w+%")
_BUILD_TAG = re.compile(r"cpu|cu\d{2,3}|rocm[\d.]*|xpu|nightly")
_CUDA_TAG = re.compile(r"cu\d{2,3}")
_NOT_IN_IDENTIFIER = re.compile(r"[^a-z0-9]+")
_LINUX = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "sys_platform": "linux",
    "extra": "",
}


def is_for_linux(marker: str, python: str = "3.11") -> bool:
    """Return whether a marker can be true on Linux x86_64, where builds for CUDA run."""
    if not marker:
        return True
    try:
        return Marker(marker).evaluate(
            {**_LINUX, "python_version": python, "python_full_version": f"{python}.0"}
        )
    except (ValueError, RecursionError):
        return True


def is_default_index(host: str) -> bool:
    """Return whether a host, in lower case, is one of the default package index."""
    return _DEFAULT_INDEX.fullmatch(host) is not None


class Content:
    """The packages, settings, leftovers and indexes that a reader has found so far."""

    def __init__(self) -> None:
        self.packages: list[ImportedPackage] = []
        self.settings: list[Setting] = []
        self.leftovers: list[Leftover] = []
        self.indexes: dict[str, str] = {}
        self.hashed: list[Span] = []
        self.main_indexes: list[tuple[str | None, Span]] = []
        self.has_extra_index = False
        self.read_near: Callable[[str], str | None] = lambda _: None
        """Returns the text of a file near the imported one by its path; None if there is none. The
        paths in a file mean something only if the spec can be next to it."""
        self.is_near: Callable[[str], bool] = lambda _: False
        """Returns whether a path next to the imported file is inside of the project."""
        self._facts: Facts | None = None

    @property
    def facts(self) -> Facts:
        """The fact tables, loaded when a file needs them."""
        if self._facts is None:
            self._facts = load_facts()
        return self._facts

    def set(self, route: Route, value: Any, span: Span) -> None:
        """Add a setting; one that repeats an earlier value is left out."""
        if not any(known.route == route and known.value == value for known in self.settings):
            self.settings.append(Setting(route, value, span))

    def leave(
        self,
        span: Span,
        message: str,
        why: str = "",
        help: str = "",  # noqa: A002
        *,
        kind: LeftoverKind = "no-field",
        missing_file: str = "",
    ) -> None:
        """Add something that a spec cannot contain. Foreign text in it passes `quote_text`."""
        self.leftovers.append(Leftover(span, message, why, help, kind, missing_file))

    def add_build(self, tag: str, span: Span, marker: str = "") -> None:
        """Add what the tag of a build of torch, such as "cu118" or "cpu", means for a spec."""
        if not is_for_linux(marker):
            self.leave(
                span,
                f"the build {tag} is for a different system",
                f"its marker is false on Linux: {quote_text(marker)}",
            )
        elif _CUDA_TAG.fullmatch(tag):
            self.set(("cuda",), cuda_of(tag), span)
        elif tag == "cpu":
            self.set(("cuda",), "none", span)
            self.set(("gpu",), "none", span)
        else:
            self.leave(
                span,
                f"the build {quote_text(tag)} is not supported",
                "a spec can only select builds for NVIDIA GPUs or for CPU",
                "set `gpu` and `cuda` in the spec",
            )

    def add_index(self, url: str, span: Span, name: str = "") -> str | None:
        """Add a package index, and return its name in the spec.

        Args:
            url: The address as it was written, perhaps with credentials.
            span: The place in the file.
            name: Its name in the file, if it has one.

        Returns:
            None if a spec does not name this index: the default one, those of PyTorch, whose builds
            `cuda` selects, and those that cannot be imported, which become leftovers.
        """
        address, problem = _split_address(url)
        if problem:
            self.leave(span, f"the package index is not imported: {problem}", help=_INDEX_HELP)
            return None
        host = urlsplit(address).hostname or ""
        has_credentials = "@" in url.split("://", 1)[-1].split("/", 1)[0]
        if host in self.facts.torch_hosts:
            self._add_pytorch_index(address, span)
            return None
        if is_default_index(host) and not has_credentials:
            return None
        index = self._name_index(address, name or host)
        variable = index.upper().replace("-", "_")
        if has_credentials:
            self.leave(
                span,
                f"the credentials of the index {index} are not imported",
                "a spec and its lock must not contain secrets",
                f"set UV_INDEX_{variable}_USERNAME and UV_INDEX_{variable}_PASSWORD on the machine",
            )
        if urlsplit(url).query:
            self.leave(
                span,
                f"the query string of the index {index}, which may contain a secret, was removed",
            )
        return index

    def _add_pytorch_index(self, address: str, span: Span) -> None:
        parts = [part for part in urlsplit(address).path.split("/") if part]
        tags = [part for part in parts if _BUILD_TAG.fullmatch(part)]
        if "nightly" in tags or "test" in parts:
            self.leave(
                span,
                "PyTorch's nightly index is not imported",
                "`cuda` selects only builds of releases",
                "use a torch release",
            )
        for tag in tags:
            if tag != "nightly":
                self.add_build(tag, span)

    def _name_index(self, address: str, wish: str) -> str:
        base = _NOT_IN_IDENTIFIER.sub("-", wish.lower()).strip("-")[:56].strip("-") or "index"
        name, number = base, 1
        while self.indexes.get(name, address) != address or name == "pypi":
            number += 1
            name = f"{base}-{number}"
        self.indexes[name] = address
        return name

    def bind_main_index(self) -> None:
        """Bind the packages to the main index if the files name no other index, as pip does."""
        if not self.main_indexes:
            return
        index, span = self.main_indexes[-1]
        if index is None:
            return
        if self.has_extra_index:
            message = f"no package is bound to the main index {index}"
            why = "pip searches every index, but in a spec each package names its index"
            hint = f"add `index: {index}` to the packages that only this index has"
        else:
            self.packages = [
                package._replace(index=package.index or index) for package in self.packages
            ]
            message = f"every package comes from the index {index}"
            why = "the files do not name any other index"
            hint = (
                "if it mirrors the public index, set it in uv's configuration, and remove "
                "`index` and `indexes` from the spec"
            )
        self.leave(span, message, why, hint)

    def report_hashes(self) -> None:
        """Add one leftover for all hashes of requirements."""
        if self.hashed:
            self.leave(
                self.hashed[0],
                "the hashes of requirements are not imported",
                "no change is needed: `provision lock` records the hash of every file",
            )

    def to_file(
        self, format_name: str, texts: Mapping[str, SourceText], *, is_resolved: bool = False
    ) -> ImportedFile:
        """Return the content as a value."""
        self.bind_main_index()
        self.report_hashes()
        return ImportedFile(
            format_name,
            texts,
            tuple(self.packages),
            tuple(self.settings),
            tuple(self.leftovers),
            dict(self.indexes),
            is_resolved,
        )


_INDEX_HELP = "add its URL to `indexes` in the spec, without secrets"


def _split_address(url: str) -> tuple[str, str]:
    """Return the address of an index without credentials and query, and a problem or ""."""
    bare = re.sub(r"^([a-z+]+://)[^/]*@", r"\1", url)
    if VARIABLE.search(bare):
        return "", "its URL contains a variable, whose value is unknown"
    try:
        parts = urlsplit(bare)
        host = parts.hostname
    except ValueError:
        return "", "its location is not a URL"
    if parts.scheme not in ("http", "https") or not host:
        return "", "its URL is not http or https"
    if re.search(r"[\s<>\"\\]", bare) or not bare.isprintable():
        return "", "its URL contains invalid characters"
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")), ""
