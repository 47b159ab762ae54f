"""Collects the content of a file while a reader goes through it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from provision.diagnostics import Route, Span
from provision.imports.conda_specs import CondaSpec, parse_conda_spec
from provision.imports.content import Content
from provision.imports.model import (
    ImportContext,
    ImportedFile,
    ImportedPackage,
    Setting,
    SourceText,
)
from provision.imports.quoting import quote_text
from provision.imports.requirement_lines import FileReference, read_index
from provision.imports.requirements import read_references
from provision.imports.shell import ShellWord
from provision.sanitize import redact

_SECRET_NAME = re.compile(
    r"(?i)(?:^|_)(?:tokens?|secrets?|password|passwd|credentials?|(?:api|access)?keys?)(?:_|$)"
)
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED_VARIABLES = frozenset(("PATH", "VIRTUAL_ENV", "PYTHONHOME"))
_BUILD_VARIABLES = frozenset(("DEBIAN_FRONTEND", "TZ", "LANG", "LC_ALL"))
"""Variables that images set for apt and the shell, without an effect on packages."""
_INDEX_VARIABLES = {
    "PIP_INDEX_URL": True,
    "UV_INDEX_URL": True,
    "UV_DEFAULT_INDEX": True,
    "PIP_EXTRA_INDEX_URL": False,
    "UV_EXTRA_INDEX_URL": False,
    "UV_INDEX": False,
}
"""Variables with addresses of indexes; True for those that replace the default index."""
_SYSTEM_FIELD = "system_packages"
_SYSTEM_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_CONDA_CHANNELS = frozenset(("conda-forge", "nodefaults"))
_CUDA_VERSION = re.compile(r"(\d+\.\d+)(?:\.\d+)?")
_PYTHON_VERSION = re.compile(r"=*\s*(3\.\d{1,2})(?:[.*].*)?")


class ToolContent(Content):
    """Packages, settings and leftovers of one file, in the order in which they were read."""

    def __init__(self, format_name: str, texts: Iterable[SourceText]) -> None:
        super().__init__()
        self.format = format_name
        self.texts = {text.name: text for text in texts}
        self.known_settings: set[tuple[Route, str]] = set()
        self.system_packages: set[str] = set()
        self.variables: set[str] = set()
        self.references: list[FileReference] = []
        self.copied_files: set[str] = set()
        self.is_resolved = False

    def finish(
        self, folder: Path | None = None, context: ImportContext | None = None
    ) -> ImportedFile:
        """Return the content as a value, with the leftovers in the order of the file.

        Args:
            folder: The folder that requirements files are relative to.
            context: The reader of requirements files; None to note them only.
        """
        self._read_references(folder, context)
        order = {name: number for number, name in enumerate(self.texts)}
        self.leftovers.sort(key=lambda part: (order[part.span.file], part.span.start.offset))
        return self.to_file(self.format, self.texts, is_resolved=self.is_resolved)

    def set(self, route: Route, value: str, span: Span) -> None:
        """Add a value of the spec; one that repeats an earlier value is left out."""
        if (route, value) not in self.known_settings:
            self.known_settings.add((route, value))
            self.settings.append(Setting(route, value, span))

    def drop_settings(self, start: int) -> None:
        """Remove the settings from an index on."""
        dropped = self.settings[start:]
        self.system_packages -= {part.value for part in dropped if part.route[0] == _SYSTEM_FIELD}
        self.known_settings -= {(part.route, part.value) for part in dropped}
        del self.settings[start:]

    def add_system_package(self, name: str, span: Span) -> None:
        """Add a package of the operating system."""
        if not _SYSTEM_PACKAGE.fullmatch(name):
            self.leave(
                span,
                f"`{quote_text(name)}` is not a valid Debian package name",
                help="add the Debian name of the package to `system_packages`",
            )
            return
        if name not in self.system_packages:
            self.set((_SYSTEM_FIELD, len(self.system_packages)), name, span)
            self.system_packages.add(name)

    def add_variable(self, name: str, value: str, span: Span) -> None:
        """Add an environment variable, unless its value is a secret or unknown."""
        shown = quote_text(name)
        if self.add_index_variable(name, value, span):
            return
        if _SECRET_NAME.search(name) or redact(value) != value:
            self.leave(
                span,
                f"the value of {shown} was left out, because it may be a secret",
                "a spec must name secrets, not contain them",
                f"add `secrets: {{{shown}: {{env: {shown}}}}}` to the spec",
            )
        elif name in _BUILD_VARIABLES:
            return
        elif name in _RESERVED_VARIABLES or not _VARIABLE_NAME.fullmatch(name) or "\0" in value:
            self.leave(
                span,
                f"the variable {shown} was left out",
                "its value differs between environments, or its name is not a valid variable name",
            )
        elif "$" in value:
            self.leave(
                span,
                f"the variable {shown} was left out, because its value contains a variable",
                help="add its value to `env` in the spec",
            )
        else:
            if name in self.variables:  # the last value of a variable holds
                self.settings = [part for part in self.settings if part.route != ("env", name)]
                self.known_settings.discard((("env", name), value))
            self.variables.add(name)
            self.set(("env", name), value, span)

    def add_index_variable(self, name: str, value: str, span: Span) -> bool:
        """Add the indexes that a variable of pip or uv names; return whether it is one."""
        is_main = _INDEX_VARIABLES.get(name)
        if is_main is None:
            return False
        for address in value.split():
            url = re.sub(r"^[\w-]+=(?=https?:)", "", address)  # uv: NAME=URL
            read_index(self, url, span, is_main=is_main)
        return True

    def add_cuda(self, version: str, span: Span) -> None:
        """Add the version of CUDA, such as "12.4.1"."""
        match = _CUDA_VERSION.fullmatch(version.strip())
        if match:
            self.set(("cuda",), match[1], span)
        else:
            self.leave(
                span,
                f"CUDA {quote_text(version)} was left out",
                "a spec needs a single CUDA version, with major and minor number",
                'set it in the spec, for example `cuda: "12.8"`',
            )

    def add_python(self, version: str, span: Span) -> None:
        """Add the version of Python, such as "3.11.9" or ">=3.10"."""
        match = _PYTHON_VERSION.fullmatch(version.strip())
        if match:
            self.set(("python",), match[1], span)
        else:
            self.leave(
                span,
                f"Python {quote_text(version)} was left out",
                "a spec needs a single Python version, with major and minor number",
                'set it in the spec, for example `python: "3.11"`',
            )

    def add_conda_spec(
        self, text: str, span: Span, *, is_exported: bool = False, channel: str = ""
    ) -> ImportedPackage | None:
        """Add a package of conda; Python itself becomes the version of the spec."""
        spec = parse_conda_spec(text, is_exported=is_exported)
        if spec is None:
            self.leave(
                span,
                f"`{quote_text(text)}` is not a conda package",
                help="use a form such as numpy=1.26 or conda-forge::ffmpeg>=6",
            )
            return None
        if spec.name == "python":
            if spec.text:
                self.add_python(spec.version or spec.text, span)
            return None
        package = to_conda_package(spec, span, is_exact=is_exported, channel=channel)
        self.packages.append(package)
        return package

    def is_known(self, word: ShellWord, span: Span) -> bool:
        """Return whether a word has a known value, and add a leftover if it does not."""
        if not word.is_known:
            self.leave(
                span,
                f"the value of `{quote_text(word.text)}` is unknown",
                "it is a variable or the output of a program, and import does not run anything",
                "add the package and its version to the spec",
            )
        return word.is_known

    def add_channels(self, channels: Sequence[tuple[str, Span]]) -> None:
        """Note the channels that a spec has to name for each package."""
        others = []
        for name, span in channels:
            short = re.sub(r"^[a-z]+://[^/]*/", "", redact(name)).strip("/")
            if short and short not in _CONDA_CHANNELS:
                others.append((quote_text(short), span))
        if others:
            names = ", ".join(name for name, _ in others)
            self.leave(
                others[0][1],
                f"the channels {names} were left out"
                if len(others) > 1
                else f"the channel {names} was left out",
                "conda packages come from conda-forge, or from the channel in the package's name",
                f"write a package that only this channel has as {others[0][0]}::NAME",
            )

    def add_file_reference(self, name: str, span: Span, *, is_constraint: bool = False) -> None:
        """Add a requirements file that a command names, unless it is a copy of a named one."""
        if PurePosixPath(name).name not in self.copied_files:
            self.references.append(FileReference(name, span, is_constraint))

    def note_file(self, name: str, span: Span) -> None:
        """Note a file whose content is needed too."""
        self.leave(
            span,
            f"the packages of {quote_text(name)} were not read",
            "this file refers to it, but you did not pass it to the command",
            import_hint(span, name),
            missing_file=name,
        )

    def _read_references(self, folder: Path | None, context: ImportContext | None) -> None:
        """Read the named requirements files that exist, and note the others."""
        present = []
        for reference in self.references:
            if folder and context and context.reader.exists(folder / reference.name):
                present.append(reference)
            else:
                self.note_file(reference.name, reference.span)
        if present and folder and context:
            self.texts |= read_references(self, present, folder, context)


def import_hint(span: Span, name: str) -> str:
    """Return the hint to import another file together with the one that names it."""
    first = span.file.partition(":cell ")[0]
    return f"import it too, with `provision import {shlex.quote(first)} {shlex.quote(name)}`"


def to_conda_package(
    spec: CondaSpec, span: Span, *, is_exact: bool = False, channel: str = ""
) -> ImportedPackage:
    """Return a package of conda; `index` is the channel that the specification names."""
    return ImportedPackage(
        spec.name,
        spec.requirement,
        span,
        manager="conda",
        index=spec.channel or channel or None,
        is_exact=is_exact and bool(spec.text),
    )
