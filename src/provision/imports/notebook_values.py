"""Content of a code cell as values: commands, imports and variables."""

from __future__ import annotations

from typing import Literal, NamedTuple

from provision.diagnostics import Span
from provision.imports.shell import ShellCommand

CommandOrigin = Literal["!", "%", "cell", "python"]


class CellCondition(NamedTuple):
    """The condition of a part of a cell.

    Args:
        text: The condition in words, "" for always.
        is_colab: True for "only on Colab", False for "only elsewhere", None for neither.
    """

    text: str = ""
    is_colab: bool | None = None

    def and_if(self, text: str, is_colab: bool | None = None) -> CellCondition:
        """Return the condition together with another one."""
        joined = f"{self.text} and {text}" if self.text else text
        return CellCondition(joined, self.is_colab if is_colab is None else is_colab)


class CellCommand(NamedTuple):
    """A shell command of a cell.

    Args:
        cell: Number of the cell.
        command: The words, with offsets in the cell's source.
        span: The command in its cell.
        origin: "!" and "%" for such lines, "cell" for a line of a %%bash cell, "python" for a call
            of os.system or subprocess.
        condition: When the command runs.
    """

    cell: int
    command: ShellCommand
    span: Span
    origin: CommandOrigin
    condition: CellCondition

    @property
    def is_conditional(self) -> bool:
        """True if the command does not run always."""
        return bool(self.condition.text)


class CellImport(NamedTuple):
    """An imported module: its full name, such as "transformers.trainer", and where."""

    cell: int
    module: str
    span: Span
    condition: CellCondition

    @property
    def is_conditional(self) -> bool:
        """True if the import does not run always."""
        return bool(self.condition.text)


class CellVariable(NamedTuple):
    """An environment variable that a cell sets; `value` is None if it is not a literal."""

    cell: int
    name: str
    value: str | None
    span: Span
    condition: CellCondition


class CellContent(NamedTuple):
    """The content of a cell; `is_parsed` is False if its Python does not parse."""

    commands: tuple[CellCommand, ...] = ()
    imports: tuple[CellImport, ...] = ()
    variables: tuple[CellVariable, ...] = ()
    is_parsed: bool = True
