"""Density and sizes: syntax nodes, conditional expressions, long functions and files, names."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field

from measures.tree import SourceFile

FUNCTION_LINES, FILE_LINES = 60, 400
COMMON_CLASS_NAMES = frozenset({"Options", "Result"})
"""Names that a class of each command may have; it is never imported next to its namesake."""


@dataclass(slots=True)
class Density:
    """Figures of all files of a tree."""

    nodes: int = 0
    code_lines: int = 0
    conditionals: int = 0
    functions: int = 0
    nested: list[str] = field(default_factory=list)
    long_functions: list[str] = field(default_factory=list)
    long_files: list[str] = field(default_factory=list)
    class_modules: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def nodes_per_line(self) -> float:
        """Syntax nodes per code line."""
        return round(self.nodes / max(self.code_lines, 1), 2)

    @property
    def conditionals_per_100_lines(self) -> float:
        """Conditional expressions per 100 code lines."""
        return round(100 * self.conditionals / max(self.code_lines, 1), 2)

    @property
    def repeated_classes(self) -> list[str]:
        """Public class names that more than one module defines, with these modules."""
        return [
            f"{name}: {', '.join(modules)}"
            for name, modules in sorted(self.class_modules.items())
            if len(modules) > 1 and name not in COMMON_CLASS_NAMES and not name.startswith("_")
        ]


def measure_density(files: tuple[SourceFile, ...]) -> Density:
    """Return the figures of a tree."""
    figures = Density()
    for file in files:
        figures.code_lines += _count_code_lines(file)
        lines = file.text.count("\n")
        if lines > FILE_LINES:
            figures.long_files.append(f"{file.name}: {lines} lines")
        for node in file.nodes:
            _add_node(figures, node, file.name)
    return figures


def _add_node(figures: Density, node: ast.AST, name: str) -> None:
    figures.nodes += isinstance(node, (ast.expr, ast.stmt))
    if isinstance(node, ast.IfExp):
        figures.conditionals += 1
        if any(isinstance(child, ast.IfExp) for child in ast.iter_child_nodes(node)):
            figures.nested.append(f"{name}:{node.lineno}")
    elif isinstance(node, ast.ClassDef):
        if name not in figures.class_modules[node.name]:
            figures.class_modules[node.name].append(name)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        figures.functions += 1
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > FUNCTION_LINES:
            figures.long_functions.append(f"{name}:{node.lineno} {node.name}: {lines} lines")


def _count_code_lines(file: SourceFile) -> int:
    """Count the lines that are not blank, comment, import or docstring."""
    excluded: set[int] = set()
    for node in file.nodes:
        if is_text(node) or isinstance(node, (ast.Import, ast.ImportFrom)):
            excluded.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(
        1
        for number, line in enumerate(file.text.splitlines(), 1)
        if line.strip() and number not in excluded and not line.strip().startswith("#")
    )


def is_text(node: ast.AST) -> bool:
    """Return whether a statement is a docstring, of an attribute too."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
