"""Measure the structure of src/provision and compare each figure with its bound.

`make structure` prints one line for each figure, and with `--list` its details. The exit code is 1
if a figure exceeds its bound.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from measures.density import FILE_LINES, FUNCTION_LINES, measure_density
from measures.kinds import KIND_FREE, kind_branches
from measures.prose import forbidden_phrases, message_phrases, reading_ease
from measures.trace import entered_files
from measures.tree import SourceFile, cycles, read_tree

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/provision"
MAX_PHRASES = 100
"""The patterns match ordinary English now and then."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, its upper bound, and the lines that `--list` prints."""

    label: str
    value: float
    bound: float
    details: tuple[str, ...] = ()

    @property
    def is_exceeded(self) -> bool:
        """Whether the figure is above its bound."""
        return self.value > self.bound


def measure_source(files: tuple[SourceFile, ...]) -> tuple[Figure, ...]:
    """Return the figures that the text of the files determines."""
    density = measure_density(files)
    return (
        Figure("syntax nodes", density.nodes, 290_000),
        Figure("syntax nodes per code line", density.nodes_per_line, 5.5),
        Figure(
            "conditional expressions per 100 code lines", density.conditionals_per_100_lines, 3.5
        ),
        _list_figure("nested conditional expressions", density.nested),
        _list_figure(f"functions over {FUNCTION_LINES} lines", density.long_functions),
        _list_figure(f"files over {FILE_LINES} lines", density.long_files),
        _list_figure("import cycles between siblings", cycles(files)),
        _list_figure(f"branches on a kind in {', '.join(KIND_FREE)}", kind_branches(files)),
        _list_figure("class names defined in more than one module", density.repeated_classes),
        _list_figure(
            "forbidden phrases in docstrings and comments", forbidden_phrases(files), MAX_PHRASES
        ),
        _list_figure("messages and help with forbidden phrases", message_phrases(files)),
    )


def measure_apply() -> Figure:
    """Return the number of files that `apply` of a local spec of two small packages enters."""
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
        files = entered_files(
            SOURCE,
            "provision.cli.main",
            *("apply", "spec.yaml", "--yes"),
            folder=bench.folder,
            environment=bench.environment(),
        )
    return _list_figure(
        "files outside rules/ that `apply` of a local spec enters",
        [name for name in files if not name.startswith("rules/")],
        60,
    )


def main(arguments: list[str]) -> int:
    """Print the figures with their bounds."""
    files = read_tree(SOURCE)
    figures = (*measure_source(files), measure_apply())
    for figure in figures:
        status = "over" if figure.is_exceeded else "ok  "
        print(f"{status} {figure.value:>9,} (at most {figure.bound:,})  {figure.label}")
        if "--list" in arguments:
            print("".join(f"       {line}\n" for line in figure.details), end="")
    density = measure_density(files)
    print(f"     {density.code_lines:>9,} code lines, {density.functions:,} functions")
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    ease = reading_ease(page.read_text(encoding="utf-8") for page in pages)
    print(f"     {ease:>9.0f} Flesch reading ease of README and docs (60 to 70 is plain English)")
    return int(any(figure.is_exceeded for figure in figures))


def _list_figure(label: str, details: list[str], bound: float = 0) -> Figure:
    return Figure(label, len(details), bound, tuple(details))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
