"""The test files closest to a mutant: by static imports, names and recorded durations."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from mutation.mutants import SOURCE, Mutant

UNRELATED = 99
"""Rank of a test file that neither imports a module nor is in the folder of its package."""


class TestFiles:
    """The test files of a checkout: what they import and the seconds that they take."""

    def __init__(self, root: Path, seconds: dict[str, float]) -> None:
        self.seconds = seconds
        self.texts = {file: (root / file).read_text(encoding="utf-8") for file in seconds}
        names = {}
        for path in [*(root / SOURCE).rglob("*.py"), *(root / "tests").rglob("*.py")]:
            dotted = ".".join(path.relative_to(root).with_suffix("").parts).removeprefix("src.")
            names[dotted.removesuffix(".__init__")] = set(find_imported_names(path, dotted))
        self.importers = defaultdict(set)
        for name, imported in names.items():
            for module, item in imported:
                # A package's __init__.py re-exports names of its modules: those are imported as
                # well.
                origins = {
                    origin
                    for origin, given in names.get(module, ())
                    if given == item and origin.startswith(module)
                }
                for target in {f"{module}.{item}", module, *origins} & names.keys():
                    self.importers[target].add(name)

    def select(self, mutant: Mutant, budget_s: float) -> list[str]:
        """Return the closest files that fit the budget, or the shortest of the closest files."""
        parts = Path(mutant.module).with_suffix("").parts[1:]
        distances = self._distances_to(".".join(parts).removesuffix(".__init__"))
        ranked = sorted(
            (*self._rank(file, parts, mutant.package, distances), file) for file in self.seconds
        )
        chosen: list[str] = []
        for rank, _, _, seconds, file in ranked:
            if seconds <= budget_s and rank < UNRELATED:
                chosen.append(file)
                budget_s -= seconds
        return chosen or [min(ranked, key=lambda row: (row[0], row[3]))[4]]

    def _rank(
        self, file: str, parts: Sequence[str], package: str, distances: dict[str, int]
    ) -> tuple[int, int, int, float]:
        """Return a sort key: closeness, common words in the names, imports in between, seconds."""
        distance = distances.get(file.removesuffix(".py").replace("/", "."), UNRELATED)
        closeness = 0 if distance == 1 else 1 if package in Path(file).parts else distance
        words, others = (
            {word[:4] for word in re.split(r"\W|_", name)}
            for name in ("_".join(parts[2:] or parts[1:]), file)
        )
        mentioned = bool(re.search(rf"\b{parts[-1].replace('_', '[-_]')}\b", self.texts[file]))
        return closeness, -len(words & others) - mentioned, distance, self.seconds[file]

    def _distances_to(self, module: str) -> dict[str, int]:
        """Return how many imports lead from each module to the given one."""
        distances, edge = {module: 0}, [module]
        for name in edge:
            for importer in sorted(self.importers[name] - distances.keys()):
                distances[importer] = distances[name] + 1
                edge.append(importer)
        return distances


def find_imported_names(path: Path, dotted: str) -> Iterator[tuple[str, str]]:
    """Yield the module and the name of every import in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            parents = dotted.split(".")[: -node.level] if node.level else []
            module = ".".join([*parents, *filter(None, [node.module])])
            # The package has another name on other machines.
            module = re.sub(r"^provision_probe\b", "provision", module)
            yield from ((module, alias.name) for alias in node.names)


def read_seconds(report: Path, collected: dict[str, set[str]]) -> dict[str, float]:
    """Return the seconds that the collected tests of each file took; a file costs half a second to
    import.
    """
    seconds = dict.fromkeys(collected, 0.5)
    for file, name, duration, _ in read_junit(report, collected):
        seconds[file] += duration if name in collected[file] else 0
    return seconds


def read_junit(report: Path, files: Iterable[str]) -> Iterator[tuple[str, str, float, bool]]:
    """Yield file, test, seconds, and whether the test passed or was skipped."""
    by_module = {file.removesuffix(".py").replace("/", "."): file for file in files}
    for case in ET.parse(report).iter("testcase"):
        module = case.get("classname") or case.get("name", "")
        while module and module not in by_module:
            module = module.rpartition(".")[0]
        if module:
            yield (
                by_module[module],
                case.get("name", ""),
                float(case.get("time", 0)),
                not {"failure", "error"} & {child.tag for child in case},
            )
