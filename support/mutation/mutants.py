"""Mutants of src/provision: the source with one small change each, made by cosmic-ray."""

from __future__ import annotations

import ast
import difflib
import random
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

SOURCE = "src/provision"
INERT_OPERATORS = r"NoOp|_Is_Eq$|_Eq_Is$|_IsNot_NotEq$|_NotEq_IsNot$"
"""`is` and `==` mostly have the same result: for enum members, classes and short strings."""
INERT_DECORATORS = re.compile(
    r"@(\w+\.)?(abstractmethod|final|overload|override|runtime_checkable)$"
)

OPERATORS = {
    name: plugins.get_operator(name)()
    for name in plugins.operator_names()
    if not plugins.get_operator(name).arguments() and not re.search(INERT_OPERATORS, name)
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one module: the `occurrence`-th position of an operator, in a line with this
    text.
    """

    package: str
    module: str
    operator: str
    occurrence: int
    line: int
    text: str
    change: list[str]
    tests: list[str]

    @property
    def key(self) -> str:
        """Identify the mutant in the results of every commit."""
        return f"{self.module}:{self.operator}:{self.occurrence}"


def draw_mutants(root: Path, per_package: int, seed: int) -> list[Mutant]:
    """Return mutants of a checkout in random order, at most one for each position."""
    modules = defaultdict(list)
    for path in sorted((root / SOURCE).rglob("*.py")):
        parts = path.relative_to(root / SOURCE).parts
        modules[parts[0] if len(parts) > 1 else "top level"].append(path)
    drawn: list[Mutant] = []
    for package, paths in modules.items():
        rng = random.Random(f"{seed}:{package}")
        positions = [(path, choices) for path in paths for choices in find_positions(path)]
        rng.shuffle(positions)
        wanted = len(drawn) + per_package
        while positions and len(drawn) < wanted:
            path, choices = positions.pop()
            mutant = make_mutant(root, package, path, *rng.choice(choices))
            drawn += [mutant] if mutant else []
    random.Random(seed).shuffle(drawn)
    return drawn


def find_positions(path: Path) -> list[list[tuple[str, int]]]:
    """Return, for each position in a module, the operators that apply there and their occurrences."""  # noqa: E501
    source = path.read_text(encoding="utf-8")
    inert = list(find_inert_ranges(source))
    counts: Counter[str] = Counter()
    found = defaultdict(list)
    for node in ast_nodes(get_ast(source)):
        for name, operator in OPERATORS.items():
            for start, _ in operator.mutation_positions(node):
                if not any(first <= start < last for first, last in inert):
                    found[start].append((name, counts[name]))
                counts[name] += 1
    return [found[start] for start in sorted(found)]


def find_inert_ranges(source: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield where annotations, code for type checkers and arguments of @dataclass begin and end."""
    lines = [line.encode() for line in source.split("\n")]
    for node in ast.walk(ast.parse(source)):
        inert: list[Any] = [getattr(node, "returns", None), getattr(node, "annotation", None)]
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            inert = node.body
        if isinstance(node, ast.ClassDef):
            inert = [item for item in node.decorator_list if "dataclass" in ast.unparse(item)]
        for item in filter(None, inert):
            # ast counts bytes, parso counts characters.
            first, last = (
                (line, len(lines[line - 1][:byte].decode())) for line, byte in _ends(item)
            )
            yield first, last


def _ends(node: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def make_mutant(
    root: Path, package: str, path: Path, operator: str, occurrence: int
) -> Mutant | None:
    """Return a mutant, or None if it does not compile or does not differ from the source."""
    source = path.read_text(encoding="utf-8")
    line, text = find_lines(source, operator)[occurrence]
    mutated = mutate_code(source, OPERATORS[operator], occurrence)
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(mutated, str(path), "exec")
    except SyntaxError:
        return None
    is_equal = ast.dump(ast.parse(source)) == ast.dump(ast.parse(mutated))
    if is_equal or (operator.endswith("RemoveDecorator") and INERT_DECORATORS.match(text)):
        return None
    return Mutant(
        package,
        path.relative_to(root).as_posix(),
        operator,
        occurrence,
        line,
        text,
        list_changes(source, mutated),
        [],
    )


def find_lines(source: str, operator: str) -> list[tuple[int, str]]:
    """Return the number and the stripped text of the line of every occurrence of an operator."""
    lines = source.split("\n")
    starts = [
        start
        for node in ast_nodes(get_ast(source))
        for start, _ in OPERATORS[operator].mutation_positions(node)
    ]
    return [(line, lines[line - 1].strip()) for line, _ in starts]


def list_changes(source: str, mutated: str) -> list[str]:
    """Return the removed and the added lines."""
    return [
        line
        for line in difflib.unified_diff(source.split("\n"), mutated.split("\n"), n=0)
        if line[0] in "+-"
    ][2:]


def apply_mutant(mutant: Mutant, source: str) -> str | None:
    """Return the mutated source of any version of the module, or None if the line was changed."""
    alike = [
        occurrence
        for occurrence, (_, text) in enumerate(find_lines(source, mutant.operator))
        if text == mutant.text
    ]
    for occurrence in sorted(alike, key=lambda index: abs(index - mutant.occurrence)):
        mutated: str = mutate_code(source, OPERATORS[mutant.operator], occurrence)
        if list_changes(source, mutated) == mutant.change:
            return mutated
    return None
