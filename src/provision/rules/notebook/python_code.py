"""Calls and strings in the Python of a notebook's cells, with their positions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from provision.diagnostics import Span
from provision.imports.notebook import NotebookCell, NotebookFile
from provision.imports.notebook_expressions import find_colab_condition, imported_modules
from provision.imports.notebook_magics import (
    MAGIC_CALL,
    CellMagic,
    find_cell_body,
    find_syntax_error,
    parse_python,
    replace_magics,
)
from provision.source.nodes import TextFile, to_text_file

RELEVANT = re.compile(
    r"TrainingArguments|Config\b|Accelerator|/content|exit|quit|kill|do_shutdown"
    r"|\bfrom[ \t]+(?:transformers|trl|accelerate|os)\b"
    r"|\bimport[ \t][^\n]{0,99}?\b(?:transformers|trl|accelerate|os)\b"
)
"""What rules look for in calls and strings, and imports that may give it another name. Other cells
are not parsed, which takes most of the time of a large notebook.
"""
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
UNKNOWN = object()
"""The value of an argument that is not a literal."""


class CallArgument(NamedTuple):
    """A keyword argument of a call; `value` is UNKNOWN if it is not a literal."""

    name: str
    value: Any
    name_span: Span
    span: Span


class CellCall(NamedTuple):
    """A call: the full name of the function, such as "transformers.TrainingArguments".

    `is_complete`: no argument but the first is given by position, and none is unpacked.
    """

    cell: int
    function: str
    arguments: tuple[CallArgument, ...]
    is_complete: bool = True

    @property
    def name(self) -> str:
        """The last part of the function's name."""
        return self.function.rpartition(".")[2]


class CellString(NamedTuple):
    """A string literal, or a line of IPython.

    Attributes:
        on_colab: True in code that runs only on Colab, False in code that runs only elsewhere.
    """

    cell: int
    text: str
    span: Span
    on_colab: bool | None


class UnreadCell(NamedTuple):
    """A cell that is not valid Python: the parser's message, and where it stopped."""

    message: str
    span: Span


class PythonCode(NamedTuple):
    """The calls and strings of all cells, in the order of the cells, and the cells without any."""

    calls: tuple[CellCall, ...]
    strings: tuple[CellString, ...]
    unread: tuple[UnreadCell, ...] = ()


def read_python(notebook: NotebookFile) -> PythonCode:
    """Return the calls and strings that rules look for, of cells that parse; executes nothing."""
    calls: list[CellCall] = []
    strings: list[CellString] = []
    unread: list[UnreadCell] = []
    aliases: dict[str, str] = {}
    for cell in notebook.cells:
        if cell.kind != "code" or RELEVANT.search(cell.source) is None:
            continue
        start, is_shell = find_cell_body(cell.source)
        if is_shell or start is None:
            continue
        python, magics = replace_magics(cell.source, start)
        module = parse_python(python)
        if module is None:
            unread += _unread_cell(cell, python)
            continue
        reader = _CellReader(cell, python, magics, aliases)
        with suppress(RecursionError):  # an expression of several hundred levels
            reader.read(module.body, None)
        calls += reader.calls
        strings += reader.strings
    return PythonCode(tuple(calls), tuple(strings), tuple(unread))


def _unread_cell(cell: NotebookCell, python: str) -> Iterator[UnreadCell]:
    """Yield a cell with the line of its syntax error; magics keep the numbers of lines."""
    error = find_syntax_error(python)
    if error is None or error.lineno is None:
        return
    file = cell.file()
    breaks = [match.end() for match in _LINE_BREAK.finditer(file.content)]
    start = (0, *breaks)[min(error.lineno - 1, len(breaks))]
    line = file.content[start : file.end_of_line(start)]
    end = start + len(line.rstrip())
    yield UnreadCell(error.msg, file.span(end - len(line.strip()), end))


class _CellReader:
    """Walks through the syntax tree of one cell."""

    def __init__(
        self,
        cell: NotebookCell,
        python: str,
        magics: tuple[CellMagic, ...],
        aliases: dict[str, str],
    ) -> None:
        self.cell = cell
        self.file: TextFile = cell.file()
        self.python = to_text_file(cell.name, python)
        self.magics = magics
        self.aliases = aliases
        self.calls: list[CellCall] = []
        self.strings: list[CellString] = []

    def read(self, nodes: Iterable[ast.AST], on_colab: bool | None) -> None:
        """Read nodes that run on Colab only (True), elsewhere only (False) or always (None)."""
        for node in nodes:
            match node:
                case ast.If(test=test, body=body, orelse=otherwise):
                    self.read([test], on_colab)
                    elsewhere = find_colab_condition(test, is_false=True)
                    self.read(body, _both(on_colab, find_colab_condition(test)))
                    self.read(otherwise, _both(on_colab, elsewhere))
                    continue
                case ast.Try(body=body, handlers=handlers) if _imports_colab(body):
                    self.read([*body, *node.orelse], _both(on_colab, True))
                    self.read(handlers, _both(on_colab, False))
                    self.read(node.finalbody, on_colab)
                    continue
                case ast.Import() | ast.ImportFrom():
                    self._read_aliases(node)
                case ast.Call():
                    self._read_call(node, on_colab)
                case ast.Constant(value=str(text)):
                    self._add_string(text, self._span(node), on_colab)
            self.read(ast.iter_child_nodes(node), on_colab)

    def _read_aliases(self, statement: ast.Import | ast.ImportFrom) -> None:
        for alias in statement.names:
            if isinstance(statement, ast.ImportFrom):
                self.aliases[alias.asname or alias.name] = f"{statement.module or ''}.{alias.name}"
            elif alias.asname:
                self.aliases[alias.asname] = alias.name

    def _read_call(self, call: ast.Call, on_colab: bool | None) -> None:
        name = self._dotted_name(call.func)
        if name == MAGIC_CALL:
            for magic in self._magics_of(call):
                self._add_string(magic.text, self.file.span(magic.start, magic.end), on_colab)
            return
        arguments = tuple(
            CallArgument(
                keyword.arg,
                keyword.value.value if isinstance(keyword.value, ast.Constant) else UNKNOWN,
                self._name_span(keyword),
                self._span(keyword),
            )
            for keyword in call.keywords
            if keyword.arg is not None
        )
        is_unpacked = len(arguments) < len(call.keywords)
        has_others = len(call.args) > 1 or any(isinstance(one, ast.Starred) for one in call.args)
        is_complete = not is_unpacked and not has_others
        self.calls.append(CellCall(self.cell.number, name, arguments, is_complete))

    def _magics_of(self, call: ast.Call) -> Iterator[CellMagic]:
        for argument in call.args:
            number = argument.value if isinstance(argument, ast.Constant) else None
            if isinstance(number, int) and number < len(self.magics):
                yield self.magics[number]

    def _add_string(self, text: str, span: Span, on_colab: bool | None) -> None:
        self.strings.append(CellString(self.cell.number, text, span, on_colab))

    def _dotted_name(self, node: ast.AST) -> str:
        match node:
            case ast.Name(id=name):
                return self.aliases.get(name, name)
            case ast.Attribute(value=value, attr=name):
                return f"{self._dotted_name(value)}.{name}"
        return ""

    def _name_span(self, keyword: ast.keyword) -> Span:
        start = self._offset(keyword.lineno, keyword.col_offset)
        return self.file.span(start, start + len(keyword.arg or ""))

    def _span(self, node: ast.expr | ast.keyword) -> Span:
        start = self._offset(node.lineno, node.col_offset)
        return self.file.span(
            start, self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        )

    def _offset(self, line: int, column: int) -> int:
        """Return an offset in the cell; columns of Python count bytes of UTF-8."""
        start = self.python.starts[line - 1]
        text = self.python.content[start : self.python.end_of_line(start)]
        return self.file.starts[line - 1] + len(text.encode()[:column].decode(errors="ignore"))


def _both(outer: bool | None, inner: bool | None) -> bool | None:
    return outer if inner is None else inner


def _imports_colab(statements: list[ast.stmt]) -> bool:
    return any(
        isinstance(statement, ast.Import | ast.ImportFrom)
        and any(name.startswith("google.colab") for name in imported_modules(statement))
        for statement in statements
    )
