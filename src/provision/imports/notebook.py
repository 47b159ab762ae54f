"""Reads a notebook: its cells, what they install and import, and its metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from provision.diagnostics import Span
from provision.imports.command_packages import add_command
from provision.imports.install_commands import InstallCommand, InstallTool, is_package_command
from provision.imports.model import ImportedFile, ImportedPackage, SourceText
from provision.imports.notebook_cells import (
    MAX_NOTEBOOK_BYTES,
    JsonString,
    NotebookCell,
    NotebookJson,
    read_notebook_json,
)
from provision.imports.notebook_code import read_code_cell
from provision.imports.notebook_magics import find_cell_body
from provision.imports.notebook_values import (
    CellCommand,
    CellCondition,
    CellImport,
    CellVariable,
)
from provision.imports.pip_arguments import read_requirement_line
from provision.imports.quoting import quote_text
from provision.imports.shell import ShellWord
from provision.imports.tool_content import ToolContent

if TYPE_CHECKING:
    from provision.imports.model import ImportContext

__all__ = [
    "MAX_NOTEBOOK_BYTES",
    "NOTEBOOK_FORMAT",
    "CellCommand",
    "CellCondition",
    "CellImport",
    "CellInstall",
    "CellVariable",
    "JsonString",
    "NotebookCell",
    "NotebookFile",
    "read",
    "read_notebook",
]

NOTEBOOK_FORMAT = "notebook"
_TPU = re.compile(r"(?i)v\d.*|tpu.*")
_FILE_NAME = r"(?:[^\s<>]*/)?(?P<name>requirements[\w.-]*\.(?:txt|in))"
_WRITTEN_FILE = re.compile(rf"%%(?:writefile|file)[ \t]+{_FILE_NAME}[ \t]*\r?\n")
_HERE_DOCUMENT = re.compile(
    rf"^[ \t]*cat[ \t]*(?:>{{1,2}}[ \t]*{_FILE_NAME}[ \t]*)?<<[ \t]*(?P<quote>['\"]?)(?P<end>\w+)"
    rf"(?P=quote)(?:[ \t]*>{{1,2}}[ \t]*{_FILE_NAME.replace('name', 'later')})?[ \t]*\r?\n",
    re.MULTILINE,
)
_LARGEST_CELL = 1 << 20
"""Characters; a longer cell contains data, not code (our choice)."""


class CellInstall(NamedTuple):
    """A command that installs packages, in the order of the notebook.

    Args:
        command: The command with its cell, span, origin and condition.
        tool: "pip", "conda" or "apt".
        program: The command without arguments, such as "pip install".
        arguments: All words after the program; offsets are in the cell's source.
        packages: Packages of pip and conda that it names.
        is_taken: False for a branch that runs only on Colab, or only elsewhere, if the notebook
            is for the other place; its packages are not imported.
    """

    command: CellCommand
    tool: InstallTool
    program: str
    arguments: tuple[ShellWord, ...]
    packages: tuple[ImportedPackage, ...]
    is_taken: bool

    @property
    def cell(self) -> int:
        """The number of the cell."""
        return self.command.cell

    @property
    def span(self) -> Span:
        """The command in its cell."""
        return self.command.span

    @property
    def is_conditional(self) -> bool:
        """True if the command does not run always."""
        return self.command.is_conditional

    @property
    def options(self) -> tuple[str, ...]:
        """The options, such as "--upgrade" or "-q"."""
        return tuple(word.text for word in self.arguments if word.text.startswith("-"))


class NotebookFile(NamedTuple):
    """A notebook as a value; nothing of it was executed, and outputs were not read.

    Args:
        name: The file as it was named.
        text: The JSON text; `JsonString` of a cell are ranges in it.
        metadata: The metadata of the notebook.
        cells: All cells in their order.
        commands: All shell commands of code cells, in their order.
        installs: Those that install packages.
        imports: The imported modules, in their order.
        variables: The environment variables that cells set, in their order.
        unparsed: Numbers of the code cells that had to be parsed, and whose Python does not.
        content: What `provision import` takes from the notebook.
    """

    name: str
    text: str
    metadata: Mapping[str, Any]
    cells: tuple[NotebookCell, ...]
    commands: tuple[CellCommand, ...]
    installs: tuple[CellInstall, ...]
    imports: tuple[CellImport, ...]
    variables: tuple[CellVariable, ...]
    unparsed: tuple[int, ...]
    content: ImportedFile

    @property
    def is_for_colab(self) -> bool:
        """True if Colab saved the notebook."""
        return is_for_colab(self.metadata)

    @property
    def gpu(self) -> str | None:
        """The card that the metadata name, such as "T4"; None if they name none."""
        gpu_type = metadata_text(self.metadata, "colab", "gpuType")
        return gpu_type if gpu_type and not _TPU.fullmatch(gpu_type) else None

    def cell(self, number: int) -> NotebookCell:
        """Return the cell with a number."""
        return self.cells[number - 1]


def read(path: Path, text: str, context: ImportContext) -> ImportedFile:
    """Return the packages and settings of a notebook."""
    return read_notebook(path, text, context, with_imports=False).content


def read_notebook(
    path: Path,
    raw: bytes | str,
    context: ImportContext | None = None,
    *,
    with_imports: bool = True,
) -> NotebookFile:
    """Return a notebook with what its code cells install and import.

    Args:
        path: The file as it was named.
        raw: Its content, as bytes or decoded.
        context: The reader of requirements files that it installs; None to note them only.
        with_imports: False to leave out the imports, which only rules need.

    Raises:
        SourceError: the file is too large, not UTF-8, not JSON, or not a notebook of version 4.
    """
    document = read_notebook_json(path, raw)
    whole = SourceText(document.name, document.text, document.name)
    content = ToolContent(NOTEBOOK_FORMAT, (whole, *(cell.text for cell in document.cells)))
    _read_metadata(document, content)
    commands: list[CellCommand] = []
    installs: list[CellInstall] = []
    imports: list[CellImport] = []
    variables: list[CellVariable] = []
    unparsed: list[int] = []
    aliases: dict[str, str] = {}
    on_colab = is_for_colab(document.metadata)
    if _is_python(document.metadata):
        code_cells = [cell for cell in document.cells if cell.kind == "code"]
    else:
        code_cells = []
    for cell in document.cells:
        _report_unreadable(cell, content)
    for cell in code_cells:
        _read_written_file(cell, content)
        if len(cell.source) > _LARGEST_CELL:
            continue
        read_cell = read_code_cell(cell, aliases, with_imports=with_imports)
        commands += read_cell.commands
        imports += read_cell.imports
        variables += read_cell.variables
        if not read_cell.is_parsed:
            unparsed.append(cell.number)
        installs += _read_installs(cell, read_cell.commands, content, on_colab=on_colab)
        _read_variables(read_cell.variables, content, on_colab=on_colab)
    return NotebookFile(
        document.name,
        document.text,
        document.metadata,
        document.cells,
        tuple(commands),
        tuple(installs),
        tuple(imports),
        tuple(variables),
        tuple(unparsed),
        content.finish(path.parent, context),
    )


def is_for_colab(metadata: Mapping[str, Any]) -> bool:
    """Return whether Colab saved a notebook."""
    return isinstance(metadata.get("colab"), dict) or "accelerator" in metadata


def metadata_text(metadata: Mapping[str, Any], *route: str) -> str | None:
    """Return a string of the metadata, None if there is none."""
    value: Any = metadata
    for key in route:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def _is_python(metadata: Mapping[str, Any]) -> bool:
    language = metadata_text(metadata, "language_info", "name") or metadata_text(
        metadata, "kernelspec", "language"
    )
    return language is None or language.lower().startswith(("python", "ipython"))


def _report_unreadable(cell: NotebookCell, content: ToolContent) -> None:
    """Note what of a cell could not be read; of text cells only what is not a cell."""
    if cell.is_malformed:
        content.leave(
            cell.file().span(0, 0),
            "the cell could not be read",
            "it has no `cell_type`, or its source is not text",
            "open the notebook in Jupyter and save it again",
        )
    elif cell.kind != "code":
        return
    elif len(cell.source) > _LARGEST_CELL:
        content.leave(
            cell.file().span(0, 0),
            f"the cell has {len(cell.source)} characters and was not read",
            f"the limit is {_LARGEST_CELL}",
            "move the data of the cell to a file",
        )
    elif cell.surrogates:
        first = cell.surrogates[0]
        content.leave(
            cell.file().span(first, first + 1),
            "the cell contains half of a surrogate pair",
            "a text file cannot contain this character; it was read as U+FFFD",
            "delete the character and type it again",
        )


def _read_written_file(cell: NotebookCell, content: ToolContent) -> None:
    """Read the requirements files that a cell writes, which this or another cell installs."""
    for name, first, last in _find_written_files(cell.source):
        file = cell.file()
        for start in file.starts:
            if first <= start < last:
                end = file.end_of_line(start)
                read_requirement_line(cell.source[start:end], file.span(start, end), content)
        content.copied_files.add(name)


def _find_written_files(source: str) -> Iterator[tuple[str, int, int]]:
    """Yield the name and the range of each requirements file that a cell writes."""
    if match := _WRITTEN_FILE.match(source):
        yield match["name"], match.end(), len(source)
    elif "<<" in source and find_cell_body(source)[1]:
        for here in _HERE_DOCUMENT.finditer(source):
            ending = re.compile(rf"^{here['end']}[ \t]*\r?$", re.MULTILINE)
            end = ending.search(source, here.end())
            if name := here["name"] or here["later"]:
                yield name, here.end(), end.start() if end else len(source)


def _read_installs(
    cell: NotebookCell, commands: tuple[CellCommand, ...], content: ToolContent, *, on_colab: bool
) -> list[CellInstall]:
    """Return the installs of a cell; those for the other place are left over."""
    installs: list[CellInstall] = []
    if not commands:
        return installs
    file = cell.file()
    for command in commands:
        if not is_package_command(command.command.text):
            continue
        is_taken = command.condition.is_colab in (None, on_colab)
        target = content if is_taken else ToolContent(NOTEBOOK_FORMAT, ())
        before = len(target.packages)
        is_place = command.condition.is_colab is not None
        install = add_command(
            target, command.command, file, "" if is_place else command.condition.text
        )
        if not isinstance(install, InstallCommand):
            continue
        packages = tuple(target.packages[before:])
        installs.append(
            CellInstall(
                command, install.tool, install.program, install.arguments, packages, is_taken
            )
        )
        if not is_taken:
            place = "outside Colab" if on_colab else "on Colab"
            content.leave(
                command.span,
                f"`{quote_text(command.command.text)}` runs only {place}",
                f"this notebook was {'' if on_colab else 'not '}saved by Colab",
                "if they are needed there too, add the packages to the spec",
            )
    return installs


def _read_variables(
    variables: tuple[CellVariable, ...], content: ToolContent, *, on_colab: bool
) -> None:
    """Add the environment variables that cells always set to a literal."""
    for variable in variables:
        if variable.value is not None and (
            not variable.condition.text or variable.condition.is_colab == on_colab
        ):
            content.add_variable(variable.name, variable.value, variable.span)


def _read_metadata(document: NotebookJson, content: ToolContent) -> None:
    """Add the card, the runtime and the Python that the metadata name."""
    metadata = document.metadata
    if not _is_python(metadata):
        content.leave(
            document.metadata_span("kernelspec", "language"),
            "the notebook is not in Python, so its cells were not read",
        )
        return
    version = metadata_text(metadata, "language_info", "version")
    span = document.metadata_span("language_info", "version")
    if is_for_colab(metadata):
        _read_colab(document, content)
        if version is not None:
            content.leave(
                span,
                f"Python {quote_text(version)}, with which the notebook was saved, was left out",
                "each Colab runtime has its own Python",
                "to keep a Python, set the target's `runtime` to one that has it "
                "(`provision facts list colab.runtimes`)",
            )
    elif version is not None:
        content.add_python(version, span)


def _read_colab(document: NotebookJson, content: ToolContent) -> None:
    metadata = document.metadata
    accelerator = metadata_text(metadata, "accelerator")
    gpu_type = metadata_text(metadata, "colab", "gpuType")
    span = document.metadata_span("accelerator")
    if gpu_type is not None:
        span = document.metadata_span("colab", "gpuType")
    if accelerator == "TPU" or (gpu_type and _TPU.fullmatch(gpu_type)):
        content.leave(
            span,
            "the notebook runs on a TPU",
            "a spec can only be for GPUs or CPUs",
            "set `gpu` in the spec to a GPU, or `gpu: none` for the CPU",
        )
    elif gpu_type:
        content.set(("gpu",), gpu_type, span)
    elif accelerator == "GPU":
        content.leave(
            span,
            "the notebook runs on a GPU, but does not name the GPU model",
            "Colab has only saved the name since 2023",
            "set it in the spec, for example `gpu: T4`",
        )
    content.set(("targets", "colab", "kind"), "colab", span)
    route = ("colab", "runtimeAttributes", "runtime_version")
    runtime = metadata_text(metadata, *route)
    if runtime is not None and re.fullmatch(r"\d{4}\.\d{2}", runtime):
        span = document.metadata_span(*route)
        content.set(("targets", "colab", "runtime"), runtime, span)
