"""Finds commands, imports and variables in the code cells of a notebook; nothing is executed."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cache, cached_property

from provision.diagnostics import Span
from provision.imports.notebook_cells import NotebookCell
from provision.imports.notebook_expressions import (
    find_colab_condition,
    imported_modules,
    shorten,
    text_of,
)
from provision.imports.notebook_magics import (
    MAGIC_CALL,
    MAGIC_NUMBER,
    CellMagic,
    find_cell_body,
    parse_lines,
    parse_python,
    replace_magics,
)
from provision.imports.notebook_values import (
    CellCommand,
    CellCondition,
    CellContent,
    CellImport,
    CellVariable,
    CommandOrigin,
)
from provision.imports.shell import ShellCommand, ShellWord, split_commands
from provision.source.nodes import TextFile, to_text_file

_LINE_TOOLS = frozenset(("pip", "uv", "conda", "mamba", "micromamba"))
_SHELL_CALLS = frozenset(
    ("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput")
)
_PROCESS_CALLS = frozenset(
    f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen")
)
_MODULES = ("os", "subprocess", "pip", "IPython", "get_ipython")
"""Modules and functions with which Python starts commands and sets variables."""
_PIP_CALLS = frozenset(("pip.main", "pip._internal.main", "pip._internal.cli.main.main"))


def read_code_cell(
    cell: NotebookCell, aliases: dict[str, str], *, with_imports: bool = True
) -> CellContent:
    """Return the commands, imports and variables of a code cell, in their order.

    Python is parsed only if it contains a word of what is looked for, because parsing takes most of
    the time of a large notebook.

    Args:
        cell: The cell.
        aliases: Names of modules and functions by their alias; those of the cell are added.
        with_imports: False to leave out the imports.
    """
    start, is_shell = find_cell_body(cell.source)
    if start is None:
        return CellContent()
    reader = _CellReader(cell, aliases, with_imports=with_imports)
    if is_shell:
        reader.read_shell(start, len(cell.source), "cell", CellCondition(), braces=False)
        return reader.content(is_parsed=True)
    python, magics = replace_magics(cell.source, start)
    if reader.pattern().search(python) is None:
        return CellContent()
    module = parse_python(python)
    if module is not None:
        reader.read_module(module, python, magics)
    else:
        for line in parse_lines(cell.source, start):
            reader.read_module(*line)
    return reader.content(is_parsed=module is not None)


@cache
def _words_pattern(words: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern of any of several words."""
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(words)))})\b")


class _CellReader:
    """Walks through the statements of one cell."""

    def __init__(self, cell: NotebookCell, aliases: dict[str, str], *, with_imports: bool) -> None:
        self.cell = cell
        self.aliases = aliases
        self.with_imports = with_imports
        self.commands: list[CellCommand] = []
        self.imports: list[CellImport] = []
        self.variables: list[CellVariable] = []
        self.magics: Sequence[CellMagic] = ()
        self.is_complete = True
        self.relevant_lines: list[int] = []
        self._open_handlers = 0

    @cached_property
    def file(self) -> TextFile:
        """The source of the cell."""
        return self.cell.file()

    def pattern(self) -> re.Pattern[str]:
        """Return the pattern of the words that a statement to read contains."""
        words = {
            alias for alias, name in self.aliases.items() if name.partition(".")[0] in _MODULES
        }
        words.update((*_MODULES, MAGIC_CALL, *(["import"] if self.with_imports else [])))
        return _words_pattern(frozenset(words))

    def content(self, *, is_parsed: bool) -> CellContent:
        """Return what was read so far."""
        return CellContent(
            tuple(self.commands),
            tuple(self.imports),
            tuple(self.variables),
            is_parsed and self.is_complete,
        )

    def read_module(self, module: ast.Module, python: str, magics: Sequence[CellMagic]) -> None:
        """Read all statements of a syntax tree."""
        self.python, self.magics = to_text_file(self.cell.name, python), magics
        self._find_relevant_lines()
        try:
            self._read_statements(module.body, CellCondition())
        except RecursionError:  # an expression of several hundred levels; no person wrote it
            self.is_complete = False

    def read_shell(
        self, start: int, end: int, origin: CommandOrigin, condition: CellCondition, *, braces: bool
    ) -> None:
        """Read the shell commands of a range of the cell."""
        commands = split_commands(self.file.content, start, end, expands_braces=braces)
        for command in commands:
            self._add_command(command, origin, condition)

    def _add_command(
        self, command: ShellCommand, origin: CommandOrigin, condition: CellCondition
    ) -> None:
        if command.condition:
            condition = condition.and_if(command.condition)
            command = command._replace(condition="")
        span = self.file.span(command.words[0].start, command.words[-1].end)
        self.commands.append(CellCommand(self.cell.number, command, span, origin, condition))

    def _find_relevant_lines(self) -> None:
        """Find the lines with a word of `pattern`; other statements need not be read."""
        found = self.pattern().finditer(self.python.content)
        self.relevant_lines = [bisect_right(self.python.starts, match.start()) for match in found]

    def _is_relevant(self, statement: ast.stmt) -> bool:
        number = bisect_left(self.relevant_lines, statement.lineno)
        last = statement.end_lineno or statement.lineno
        return number < len(self.relevant_lines) and self.relevant_lines[number] <= last

    def _read_statements(self, statements: Iterable[ast.stmt], condition: CellCondition) -> None:
        for statement in statements:
            if self._is_relevant(statement):
                self._read_statement(statement, condition)

    def _read_statement(self, statement: ast.stmt, condition: CellCondition) -> None:
        match statement:
            case ast.Import() | ast.ImportFrom():
                self._read_import(statement, condition)
            case ast.If(test=test, body=body, orelse=otherwise):
                self._read_expressions([test], condition)
                text, is_colab = shorten(test), find_colab_condition(test)
                self._read_statements(body, condition.and_if(f"`{text}`", is_colab))
                is_elsewhere = find_colab_condition(test, is_false=True)
                self._read_statements(otherwise, condition.and_if(f"not `{text}`", is_elsewhere))
            case ast.Try() | ast.TryStar():
                self._read_try(statement, condition)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                called = condition.and_if(f"`{statement.name}` is used")
                self._read_statements(statement.body, called)
            case ast.For() | ast.AsyncFor() | ast.While():
                header = statement.test if isinstance(statement, ast.While) else statement.iter
                self._read_expressions([header], condition)
                self._read_statements((*statement.body, *statement.orelse), condition)
            case ast.With() | ast.AsyncWith():
                self._read_expressions([item.context_expr for item in statement.items], condition)
                self._read_statements(statement.body, condition)
            case ast.Match():
                for case in statement.cases:
                    text = f"`{shorten(statement.subject)}` matches"
                    self._read_statements(case.body, condition.and_if(text))
            case _:
                self._read_variable(statement, condition)
                self._read_expressions([statement], condition)

    def _read_try(self, statement: ast.Try | ast.TryStar, condition: CellCondition) -> None:
        """Read a try block, which runs always, and what runs after a failure of its first line."""
        needs_colab = any(
            isinstance(part, ast.Import | ast.ImportFrom)
            and any(name.startswith("google.colab") for name in imported_modules(part))
            for part in statement.body
        )
        inside = condition
        if needs_colab:
            inside = condition.and_if("`import google.colab` succeeds", is_colab=True)
        handles = bool(statement.handlers)
        self._open_handlers += handles
        self._read_statements(statement.body, inside)
        self._open_handlers -= handles
        first = shorten(statement.body[0])
        for magic in self._magics_in(first)[:1]:
            first = magic.text
        failed = condition.and_if(f"`{first}` fails", is_colab=False if needs_colab else None)
        for handler in statement.handlers:
            self._read_statements(handler.body, failed)
        self._read_statements(statement.orelse, inside)
        self._read_statements(statement.finalbody, condition)

    def _read_import(
        self, statement: ast.Import | ast.ImportFrom, condition: CellCondition
    ) -> None:
        for alias in statement.names:
            name = alias.name
            if isinstance(statement, ast.ImportFrom):
                name = f"{statement.module or ''}.{alias.name}"
            if alias.asname or isinstance(statement, ast.ImportFrom):
                self.aliases[alias.asname or alias.name] = name
                if name.partition(".")[0] in _MODULES:
                    self._find_relevant_lines()
        if not self.with_imports:
            return
        span = self._span(statement)
        if self._open_handlers:
            condition = condition.and_if("its failure is handled")
        for module in imported_modules(statement):
            self.imports.append(CellImport(self.cell.number, module, span, condition))

    def _read_variable(self, statement: ast.stmt, condition: CellCondition) -> None:
        """Read `os.environ["NAME"] = value`."""
        match statement:
            case ast.Assign(targets=[ast.Subscript(value=mapping, slice=key)], value=value):
                pass
            case _:
                return
        if self._dotted_name(mapping) != "os.environ" or not isinstance(key, ast.Constant):
            return
        text = value.value if isinstance(value, ast.Constant) else None
        self.variables.append(
            CellVariable(
                self.cell.number,
                str(key.value),
                text if isinstance(text, str) else None,
                self._span(statement),
                condition,
            )
        )

    def _read_expressions(self, roots: Iterable[ast.AST], condition: CellCondition) -> None:
        """Read the calls in expressions, in their order in the text."""
        for root in roots:
            calls = [node for node in ast.walk(root) if isinstance(node, ast.Call)]
            for call in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
                self._read_call(call, condition)

    def _read_call(self, call: ast.Call, condition: CellCondition) -> None:
        name = self._dotted_name(call.func).removeprefix("IPython.")
        if name == MAGIC_CALL:
            for magic in self._magics_in(ast.unparse(call)):
                self._read_magic(magic, condition)
            return
        ipython = name.removeprefix("get_ipython.") if name.startswith("get_ipython.") else ""
        argument = call.args[0] if call.args else None
        if argument is None:
            return
        if name in _SHELL_CALLS or ipython in ("system", "getoutput", "magic"):
            self._read_shell_text(argument, condition)
        elif ipython == "run_line_magic" and len(call.args) > 1:
            tool, line = text_of(argument), call.args[1]
            if tool in _LINE_TOOLS:
                self._read_shell_text(line, condition, before=tool)
        elif ipython == "run_cell_magic" and text_of(argument) in ("bash", "sh"):
            for body in call.args[2:3]:
                self._read_shell_text(body, condition)
        elif name in _PROCESS_CALLS:
            words = self._list_words(argument)
            if words is None:
                self._read_shell_text(argument, condition)
            elif words:
                self._add_command(ShellCommand(tuple(words)), "python", condition)
        elif name in _PIP_CALLS and (words := self._list_words(argument)):
            pip = ShellWord("pip", words[0].start, words[0].start)
            self._add_command(ShellCommand((pip, *words)), "python", condition)

    def _magics_in(self, python: str) -> list[CellMagic]:
        """Return the magics that the calls in a text stand for; a cell may contain such a call."""
        numbers = [int(number) for number in MAGIC_NUMBER.findall(python)]
        return [self.magics[number] for number in numbers if number < len(self.magics)]

    def _read_magic(self, magic: CellMagic, condition: CellCondition) -> None:
        text = magic.text
        if text.startswith("!"):
            start = magic.start + (2 if text.startswith("!!") else 1)
            self.read_shell(start, magic.end, "!", condition, braces=True)
            return
        is_automatic = not text.startswith("%")
        name, _, arguments = text.removeprefix("%").partition(" ")
        start = magic.start + (0 if is_automatic else 1)
        if name in _LINE_TOOLS or (is_automatic and name == "pip3"):
            self.read_shell(start, magic.end, "%", condition, braces=True)
        elif name in ("sx", "system", "sc"):
            self.read_shell(start + len(name), magic.end, "!", condition, braces=True)
        elif name in ("env", "set_env"):
            variable = re.fullmatch(r"\s*(\w+)\s*(?:=|\s)\s*(.*?)\s*", arguments)
            if variable:
                value = None if re.search(r"[{$]", variable[2]) else variable[2]
                span = self.file.span(magic.start, magic.end)
                self.variables.append(
                    CellVariable(self.cell.number, variable[1], value, span, condition)
                )

    def _read_shell_text(
        self, argument: ast.expr, condition: CellCondition, before: str = ""
    ) -> None:
        """Read the commands in a string of Python; `before` is the name of a magic."""
        text = text_of(argument)
        if text is None:
            return
        start, end = self._range(argument)
        raw = self.file.content[start:end]
        opening = re.match(r"[rR]?(?:\"{3}|'{3}|[\"'])", raw)
        if opening and not before and raw[opening.end() :].startswith(text) and "\\" not in text:
            begin = start + opening.end()
            self.read_shell(begin, begin + len(text), "python", condition, braces=False)
            return
        for command in split_commands(f"{before} {text}", expands_braces=True):
            words = tuple(word._replace(start=start, end=end) for word in command.words)
            self._add_command(ShellCommand(words, command.condition), "python", condition)

    def _list_words(self, argument: ast.expr) -> list[ShellWord] | None:
        """Return the words of a list of arguments, None for another expression."""
        match argument:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return [self._list_word(element) for element in elements]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first = self._list_words(left)
                second = self._list_words(right)
                if first is None or second is not None:
                    return None if first is None else [*first, *(second or [])]
                return [*first, self._list_word(right)]
            case (
                ast.Call(func=ast.Attribute(value=text, attr="split"))
                | ast.Call(func=ast.Attribute(attr="split"), args=[text])
            ):
                start, end = self._range(argument)
                words = (text_of(text) or "").split()
                return [ShellWord(word, start, end, "{" not in word) for word in words] or None
        return None

    def _list_word(self, element: ast.expr) -> ShellWord:
        start, end = self._range(element)
        if self._dotted_name(element) == "sys.executable":
            return ShellWord("python", start, end)
        if isinstance(element, ast.Constant) and isinstance(element.value, str):
            return ShellWord(element.value, start, end)
        return ShellWord(text_of(element) or f"{{{shorten(element)}}}", start, end, is_known=False)

    def _dotted_name(self, node: ast.AST) -> str:
        """Return the full name of a function, such as "subprocess.run"; "" for an expression."""
        match node:
            case ast.Name(id=name):
                return self.aliases.get(name, name)
            case ast.Attribute(value=value, attr=name):
                before = self._dotted_name(value)
                return f"{before}.{name}" if before else ""
            case ast.Call(func=function, args=[]):
                return self._dotted_name(function)
        return ""

    def _range(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Return the offsets of a node in the cell; its columns count bytes of UTF-8."""
        end_line = node.end_lineno or node.lineno
        end_column = node.end_col_offset or 0
        return self._offset(node.lineno, node.col_offset), self._offset(end_line, end_column)

    def _offset(self, line: int, column: int) -> int:
        start = self.python.starts[line - 1]
        text = self.python.content[start : self.python.end_of_line(start)]
        before = text.encode()[:column].decode(errors="ignore")
        return self.file.starts[line - 1] + len(before)

    def _span(self, node: ast.expr | ast.stmt) -> Span:
        return self.file.span(*self._range(node))
