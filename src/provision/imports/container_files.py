"""Reads the container descriptions of cog (cog.yaml) and of editors (devcontainer.json)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provision.diagnostics import Span
from provision.errors import SourceError
from provision.imports.images import add_image
from provision.imports.json_positions import find_strings, mask_json_comments
from provision.imports.model import SourceText
from provision.imports.pip_arguments import read_requirement_line
from provision.imports.quoting import quote_text
from provision.imports.scripts import add_script
from provision.imports.shell import ShellCommand, ShellWord, split_commands
from provision.imports.tool_content import ToolContent
from provision.imports.yaml_content import (
    find_value,
    key_span,
    list_entries,
    list_items,
    read_commands,
    read_text,
    read_yaml,
)
from provision.source.nodes import LocatedValue, TextFile, to_text_file

if TYPE_CHECKING:
    from provision.imports.model import ImportContext, ImportedFile

_COG_KEYS = frozenset(
    (
        *("gpu", "cuda", "python_version", "python_packages", "python_requirements", "run"),
        *("system_packages", "pre_install"),
    )
)
_COMMAND_KEYS = (
    "initializeCommand",
    "onCreateCommand",
    "updateContentCommand",
    "postCreateCommand",
    "postStartCommand",
    "postAttachCommand",
)
_ON_HOST = "initializeCommand"
"""The command that runs on the machine of the user, not in the container."""


def read_cog(path: Path, text: str, context: ImportContext) -> ImportedFile:
    """Return the content of a cog.yaml; what describes the service is not part of a spec."""
    documents, content = read_yaml(path, text, "cog.yaml")
    for root in documents:
        build = find_value(root, "build")
        if build is not None:
            _read_build(build, content)
    return content.finish(path.parent, context)


def _read_build(build: LocatedValue, content: ToolContent) -> None:
    gpu = find_value(build, "gpu")
    if gpu is not None and read_text(gpu) == "true":
        content.leave(
            gpu.at.span,
            "cog does not name the GPU",
            help="set it in the spec, for example `gpu: L4`",
        )
    elif gpu is not None and read_text(gpu) == "false":
        content.set(("gpu",), "none", gpu.at.span)
    cuda = find_value(build, "cuda")
    if cuda is not None and (version := read_text(cuda)):
        content.add_cuda(version, cuda.at.span)
    python = find_value(build, "python_version")
    if python is not None and (version := read_text(python)):
        content.add_python(version, python.at.span)
    for package in list_items(find_value(build, "python_packages")):
        read_requirement_line(read_text(package) or "", package.at.span, content)
    requirements = find_value(build, "python_requirements")
    if requirements is not None and (name := read_text(requirements)):
        content.add_file_reference(name, requirements.at.span)
    for package in list_items(find_value(build, "system_packages")):
        content.add_system_package(read_text(package) or "", package.at.span)
    for key in ("run", "pre_install"):
        for step in list_items(find_value(build, key)):
            command = step if read_text(step) is not None else find_value(step, "command")
            add_script(
                content, read_commands(command), step.node.text, f"`{key}`", has_exports=False
            )
    for key, value in list_entries(build):
        if key not in _COG_KEYS:
            content.leave(key_span(value), f"{quote_text(key)} was left out")


def read_devcontainer(path: Path, text: str, context: ImportContext) -> ImportedFile:  # noqa: ARG001
    """Return the content of a devcontainer.json, which may have comments.

    Raises:
        SourceError: the text is not JSON, or not an object.
    """
    name = str(path)
    masked = mask_json_comments(text)
    document = parse_json(name, masked)
    content = ToolContent("devcontainer.json", (SourceText(name, text, name),))
    container = _Devcontainer(to_text_file(name, masked), document, content)
    container.read()
    return content.finish()


def parse_json(name: str, text: str) -> Mapping[str, Any]:
    """Return an object of JSON.

    Raises:
        SourceError: the text is not JSON, or not an object.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise SourceError(
            f"{name}:{error.lineno}:{error.colno}: the file is not valid JSON",
            why=error.msg,
            hint="comments and trailing commas are allowed; everything else must be JSON",
        ) from None
    except (RecursionError, ValueError) as error:
        raise SourceError(f"{name}: the file is not valid JSON", why=str(error)) from None
    if not isinstance(document, dict):
        raise SourceError(
            f"{name} is not a JSON object", hint='correct the file: it must start with "{"'
        )
    return document


class _Devcontainer:
    """Reads the keys of a devcontainer.json."""

    def __init__(self, file: TextFile, document: Mapping[str, Any], content: ToolContent) -> None:
        self.file = file
        self.document = document
        self.content = content
        self.ranges: dict[tuple[str | int, ...], tuple[int, int]] = {}
        for route, start, end in find_strings(file.content):
            self.ranges.setdefault(route, (start, end))

    def read(self) -> None:
        """Add all that a spec can contain."""
        image = self.document.get("image")
        if isinstance(image, str):
            add_image(image, self._span("image"), self.content)
        build = self.document.get("build")
        dockerfile = self.document.get("dockerFile")
        if isinstance(build, dict) and isinstance(build.get("dockerfile"), str):
            self.content.note_file(build["dockerfile"], self._span("build", "dockerfile"))
        elif isinstance(dockerfile, str):
            self.content.note_file(dockerfile, self._span("dockerFile"))
        for name, options in _items(self.document.get("features")):
            self._read_feature(name, options if isinstance(options, dict) else {})
        for key in ("containerEnv", "remoteEnv"):
            for name, value in _items(self.document.get(key)):
                if isinstance(value, str):
                    self.content.add_variable(name, value, self._span(key, name))
        for key in _COMMAND_KEYS:
            self._read_command(key, self.document.get(key), (key,))
        gpu = _get(self.document, "hostRequirements", "gpu")
        if gpu:
            self.content.leave(
                self._span("hostRequirements", "gpu"),
                "the file requires a GPU, but does not name one",
                help="set it in the spec, for example `gpu: L4`",
            )

    def _span(self, *route: str | int) -> Span:
        """Return the span of a string, or of the first one after it that has a position."""
        if route in self.ranges:
            return self.file.span(*self.ranges[route])
        key = re.search(rf'"{re.escape(str(route[-1]))}"\s*:', self.file.content)
        return self.file.span(*key.span()) if key else self.file.span(0, 0)

    def _read_feature(self, name: str, options: Mapping[str, Any]) -> None:
        short = name.partition("@")[0].rpartition("/")[2].partition(":")[0]
        route = ("features", name)
        version = options.get("version")
        if short == "python":
            if isinstance(version, str):
                self.content.add_python(version, self._span(*route, "version"))
        elif short == "nvidia-cuda":
            cuda = options.get("cudaVersion")
            if isinstance(cuda, str):
                self.content.add_cuda(cuda, self._span(*route, "cudaVersion"))
        elif short == "apt-packages" and isinstance(options.get("packages"), str):
            for package in re.split(r"[,\s]+", options["packages"].strip()):
                self.content.add_system_package(package, self._span(*route, "packages"))
        elif short not in ("common-utils", "git", "github-cli", "conda"):
            self.content.leave(
                self._span(*route),
                f"the feature {quote_text(name)} was left out",
                "its name does not show which packages it installs",
            )

    def _read_command(self, key: str, value: Any, route: tuple[str | int, ...]) -> None:
        """Read a command: a text, a list of words, or several of them by name."""
        if key == _ON_HOST or value is None:
            return
        if isinstance(value, dict):
            for name, part in value.items():
                self._read_command(key, part, (*route, name))
            return
        start, end = self.ranges.get(route, (0, 0))
        commands: tuple[ShellCommand, ...] = ()
        if isinstance(value, str):
            exact = self.file.content[start + 1 : end - 1] == value
            commands = split_commands(value)
            if exact:
                commands = split_commands(self.file.content, start + 1, end - 1)
            else:
                commands = tuple(_at(command, start, end) for command in commands)
        elif isinstance(value, list) and value:
            words = [
                ShellWord(str(part), *self.ranges.get((*route, index), (0, 0)))
                for index, part in enumerate(value)
            ]
            commands = (ShellCommand(tuple(words)),)
        add_script(self.content, commands, self.file, key, has_exports=False)


def _at(command: ShellCommand, start: int, end: int) -> ShellCommand:
    words = tuple(word._replace(start=start, end=end) for word in command.words)
    return command._replace(words=words)


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _get(value: Any, *route: str) -> Any:
    for key in route:
        value = value.get(key) if isinstance(value, dict) else None
    return value
