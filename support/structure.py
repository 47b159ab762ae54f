"""Measure the structure of src/provision: density, sizes, import cycles, branches on a kind of
target, and the files that `apply` enters.

`make structure` prints one line for each figure with its bound. The exit code is 1 if a bound
does not hold.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/provision"
KINDS = frozenset({"local", "workbench", "colab", "colab-enterprise", "vertex-job"})
KIND_FREE = ("commands", "cli", "views", "lock", "verification")
"""Packages that do not branch on the kind of a target."""
FUNCTION_LINES, FILE_LINES = 60, 400


@dataclass(slots=True)
class Figures:
    """What the syntax trees of all files show."""

    nodes: int = 0
    code_lines: int = 0
    conditionals: int = 0
    nested: int = 0
    functions: int = 0
    long_functions: list[str] = field(default_factory=list)
    long_files: list[str] = field(default_factory=list)
    kind_branches: list[str] = field(default_factory=list)
    classes: Counter[str] = field(default_factory=Counter)


def measure(source: Path = SOURCE) -> Figures:
    """Return the figures of all Python files below a folder."""
    figures = Figures()
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(source).as_posix()
        tree = ast.parse(text)
        figures.code_lines += _code_lines(tree, text)
        if text.count("\n") > FILE_LINES:
            figures.long_files.append(f"{name}: {text.count(chr(10))} lines")
        for node in ast.walk(tree):
            _add(figures, node, name)
        if name.split("/")[0] in KIND_FREE:
            figures.kind_branches += [f"{name}:{line}" for line in kind_branches(tree)]
    return figures


def _add(figures: Figures, node: ast.AST, name: str) -> None:
    figures.nodes += isinstance(node, (ast.expr, ast.stmt))
    if isinstance(node, ast.IfExp):
        figures.conditionals += 1
        figures.nested += any(isinstance(child, ast.IfExp) for child in ast.iter_child_nodes(node))
    elif isinstance(node, ast.ClassDef):
        figures.classes[node.name] += 1
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        figures.functions += 1
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > FUNCTION_LINES:
            figures.long_functions.append(f"{name}:{node.lineno} {node.name}: {lines} lines")


def _code_lines(tree: ast.Module, text: str) -> int:
    """Count the lines that are not blank, comment, import or docstring."""
    apart: set[int] = set()
    for node in ast.walk(tree):
        is_text = (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        )
        if is_text or isinstance(node, (ast.Import, ast.ImportFrom)):
            apart.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(
        1
        for number, line in lines
        if line.strip() and number not in apart and not line.strip().startswith("#")
    )


def kind_branches(tree: ast.Module) -> Iterator[int]:
    """Yield the lines that compare with a kind's name, match it, use it as a key or member of a
    set, or import a kind's module.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            values = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            values = [node.value]
        elif isinstance(node, ast.Dict):
            values = [key for key in node.keys if key is not None]
        elif isinstance(node, (ast.Set, ast.Tuple)):
            values = list(node.elts)
        elif isinstance(node, ast.Subscript):
            values = [node.slice]
        elif isinstance(node, ast.ImportFrom) and node.module:
            if _is_kind_module(node.module) or any(
                _is_kind_module(f"{node.module}.{alias.name}") for alias in node.names
            ):
                yield node.lineno
            continue
        else:
            continue
        if any(
            isinstance(value, ast.Constant) and value.value in KINDS
            for value in values
            if isinstance(value, ast.Constant)
        ):
            yield node.lineno


def _is_kind_module(name: str) -> bool:
    parts = name.split(".")
    if len(parts) < 3 or parts[0] != "provision" or parts[1] not in ("targets", "kinds"):
        return False
    return parts[2].replace("_", "-") in KINDS


def cycles() -> list[str]:
    """Return the import cycles between siblings of any package, as import-linter's
    `acyclic_siblings` understands them.
    """
    import grimp

    graph = grimp.build_graph("provision", cache_dir=None)
    found = []
    packages = {module.rpartition(".")[0] for module in graph.modules if "." in module}
    for package in sorted(packages):
        children = sorted(graph.find_children(package))
        below = {child: {child, *graph.find_descendants(child)} for child in children}
        owner = {module: child for child, modules in below.items() for module in modules}
        edges: dict[str, set[str]] = {child: set() for child in children}
        for child in children:
            for module in below[child]:
                edges[child] |= {
                    owner[other]
                    for other in graph.find_modules_directly_imported_by(module)
                    if owner.get(other, child) != child
                }
        found += [
            " <-> ".join(sorted(group)) for group in _strongly_connected(edges) if len(group) > 1
        ]
    return found


def _strongly_connected(edges: dict[str, set[str]]) -> list[set[str]]:
    """Return groups of nodes that reach each other. The graphs here are small: reachability by
    search is enough.
    """

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for after in edges[waiting.pop()] - seen:
                seen.add(after)
                waiting.append(after)
        return seen

    reach = {node: reached(node) for node in edges}
    groups: list[set[str]] = []
    for node in edges:
        group = {node} | {other for other in reach[node] if node in reach[other]}
        if group not in groups:
            groups.append(group)
    return groups


_TRACER = """
import json, sys
entered = set()
def profile(frame, event, argument):
    if event == "call" and frame.f_code.co_flags & 1:  # CO_OPTIMIZED: a function, neither a module nor a class body
        entered.add(frame.f_code.co_filename)
from provision.cli.main import main
sys.setprofile(profile)
try:
    code = main(["apply", "spec.yaml", "--yes"])
finally:
    sys.setprofile(None)
    json.dump(sorted(entered), open("entered.json", "w"))
sys.exit(code)
"""  # noqa: E501


def files_entered() -> list[str]:
    """Apply a local spec of two small packages in a folder of its own and return the files outside
    rules/ in which a function was called.
    """
    sys.path.insert(0, str(ROOT))
    from tests.rig import Bench, make_index, make_wheel, small_spec

    with tempfile.TemporaryDirectory(prefix="provision-structure-") as name:
        folder = Path(name)
        wheels = (
            make_wheel(folder / "wheels", "alpha", "1.0"),
            make_wheel(folder / "wheels", "beta", "1.0", requires=("alpha<2",)),
        )
        bench = Bench(folder / "project", make_index(folder / "index", wheels))
        (bench.folder / "home").mkdir(parents=True)
        bench.spec(small_spec("beta"))
        done = subprocess.run(
            [sys.executable, "-c", _TRACER],
            cwd=bench.folder,
            env=bench.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"apply ended with {done.returncode}:\n{done.stderr}")
        entered = json.loads((bench.folder / "entered.json").read_text())
    names = [os.path.relpath(path, SOURCE) for path in entered if path.startswith(str(SOURCE))]
    return [name for name in names if not name.startswith("rules/")]


def main() -> int:
    """Print the figures with their bounds."""
    figures = measure()
    found = cycles()
    entered = files_entered()
    repeated = sorted(name for name, count in figures.classes.items() if count > 1)
    rows: list[tuple[str, float, float, list[str]]] = [
        ("syntax nodes", figures.nodes, 290_000, []),
        ("syntax nodes per code line", round(figures.nodes / figures.code_lines, 2), 5.5, []),
        (
            "conditional expressions per 100 code lines",
            round(100 * figures.conditionals / figures.code_lines, 2),
            3.5,
            [],
        ),
        ("nested conditional expressions", figures.nested, 0, []),
        (
            f"functions over {FUNCTION_LINES} lines",
            len(figures.long_functions),
            0,
            figures.long_functions,
        ),
        (f"files over {FILE_LINES} lines", len(figures.long_files), 0, figures.long_files),
        ("import cycles between siblings", len(found), 0, found),
        (
            f"branches on a kind in {', '.join(KIND_FREE)}",
            len(figures.kind_branches),
            0,
            figures.kind_branches,
        ),
        ("files outside rules/ that `apply` of a local spec enters", len(entered), 60, []),
    ]
    listed = "--list" in sys.argv[1:]
    for label, value, bound, details in rows:
        print(f"{'ok  ' if value <= bound else 'over'} {value:>9,} (at most {bound:,})  {label}")
        if listed:
            print("".join(f"       {line}\n" for line in details), end="")
    print(
        f"     {figures.code_lines:>9,} code lines, {figures.functions:,} functions, "
        f"{len(repeated)} class names defined more than once"
    )
    if listed:
        print("     ", ", ".join(f"{name} {figures.classes[name]}" for name in repeated))
    return int(any(value > bound for _, value, bound, _ in rows))


if __name__ == "__main__":
    sys.exit(main())
