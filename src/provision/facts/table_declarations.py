"""Declarations of fact tables: descriptors that build a table at its first use.

A table is named as `provision facts` names it ("machines", "cuda.toolkits"). The key of a mapping
is the key that the table itself declares under `keys`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from provision.facts.compiled_tables import CompiledTables

_Row = TypeVar("_Row")
_Content = TypeVar("_Content")


class HasCompiledTables(Protocol):
    """An object whose class declares tables."""

    compiled: CompiledTables


class Table(Generic[_Content]):
    """A table that is built at first use and then stored: most specs need few tables."""

    def __init__(self, build: Callable[[CompiledTables], _Content]) -> None:
        self._build = build

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, facts: HasCompiledTables, owner: type) -> _Content:
        """Build the table and store it in the instance, which hides this descriptor.

        Raises:
            ProvisionError: the table is damaged.
        """
        content = facts.compiled.build(self._build)
        facts.__dict__[self._name] = content
        return content


def rows(name: str, row_type: Callable[..., _Row]) -> Table[tuple[_Row, ...]]:
    """Declare a table that is used in the order of its rows."""
    return Table(lambda compiled: compiled.rows(name, row_type))


def keyed(name: str, row_type: Callable[..., _Row]) -> Table[Mapping[str, _Row]]:
    """Declare a table whose rows are looked up by their key; its parts are joined by colons."""
    return Table(
        lambda compiled: {":".join(key): row for key, row in compiled.keyed_rows(name, row_type)}
    )


def grouped(name: str, row_type: Callable[..., _Row]) -> Table[Mapping[str, tuple[_Row, ...]]]:
    """Declare a table whose rows are looked up by the first part of their key."""

    def build(compiled: CompiledTables) -> Mapping[str, tuple[_Row, ...]]:
        groups: dict[str, list[_Row]] = {}
        for key, row in compiled.keyed_rows(name, row_type):
            groups.setdefault(key[0], []).append(row)
        return {first: tuple(group) for first, group in groups.items()}

    return Table(build)


def names(name: str) -> Table[frozenset[str]]:
    """Declare a set of names."""
    return Table(lambda compiled: frozenset(compiled.value(name)))
