"""Read the table of transformers releases (transformers.yaml) anew from the wheels of the default
index.

The newest patch of each minor is read, from the table's first minor on: `python` and `declared`
from METADATA (torch as the extra `torch` asks for it),
`accelerate`, `floors` and `ceilings` from the *_MIN_VERSION and *_MAX_VERSION constants of
utils/import_utils.py (before 4.37 `accelerate` from the extra
`torch`), and `torch` from what is_torch_available says when it turns PyTorch off. The module is
parsed, never imported.

Not touched: `brings_accelerate` at the top of the table, which is a choice made by hand from the
extras in METADATA.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from typing import Any

from remaking.declaring import declared, in_runs, linux_wheel, newest_of_minors, project
from remaking.index import File
from remaking.running import Remade, ask, options, rows_of
from remaking.sheets import Row
from remaking.wheels import Shelf, constants, each, python_of, requirements

NAMES = ("huggingface-hub", "numpy", "tokenizers", "safetensors")
OTHERS = ("ACCELERATE", "FSDP", "XLA_FSDPV2", "TRITON")
"""Constants that stand in a column of their own, or speak of one feature and not of a package that
is used.
"""


def read(shelf: Shelf, known: list[Row], pythons: list[str]) -> list[dict[str, Any]]:
    """Return all rows as the wheels have them; bounds are read for `pythons`."""
    wanted = newest_of_minors(shelf.releases("transformers"), known[0]["first"])
    return list(
        in_runs(each(lambda item: (item[0], _release(shelf, item[1], pythons)), wanted.items()))
    )


def _release(shelf: Shelf, files: list[File], pythons: list[str]) -> dict[str, Any]:
    wheel = shelf.wheel(linux_wheel(files))
    metadata, source = wheel.metadata(), wheel.text("transformers/utils/import_utils.py")
    asked, floors, ceilings = (
        requirements(metadata),
        constants(source, "_MIN_VERSION"),
        constants(source, "_MAX_VERSION"),
    )
    extra = declared(asked, ("torch[torch]", "accelerate[torch]"), pythons)
    torch = {"torch": extra["torch[torch]"]} if extra.get("torch[torch]") else {}
    return {
        "python": python_of(metadata),
        "accelerate": floors.get("ACCELERATE")
        or extra.get("accelerate[torch]", "").removeprefix(">=")
        or None,
        "torch": switched_off_below(source),
        "declared": {**declared(asked, NAMES, pythons), **torch},
        **{
            column: own
            for column, found in (("floors", floors), ("ceilings", ceilings))
            if (own := _packages(found))
        },
    }


def switched_off_below(source: str) -> str | None:
    """Return the torch release below which transformers turns PyTorch off, as its own warning says;
    None when it has no such warning.
    """
    texts = (
        line.value
        for line in ast.walk(ast.parse(source))
        if isinstance(line, ast.Constant) and isinstance(line.value, str)
    )
    return next(
        (
            found[1]
            for text in texts
            if (
                found := re.search(
                    r"Disabling PyTorch because PyTorch >= ([\d.]*\d) is required", text
                )
            )
        ),
        None,
    )


def _packages(found: dict[str, str]) -> dict[str, str]:
    return {project(name): version for name, version in found.items() if name not in OTHERS}


def remade(shelf: Shelf, known: list[Row], pythons: list[str]) -> Iterator[Remade]:
    """Yield the table as read."""
    yield Remade(
        "transformers",
        "rows",
        ("first",),
        tuple(read(shelf, known, pythons)),
        ({"last": shelf.newest("transformers")},),
    )


def main(arguments: list[str]) -> int:
    """Run the script."""
    chosen = options(arguments, __doc__ or "")
    known, pythons = (
        rows_of(chosen.tables, "transformers"),
        [row["version"] for row in rows_of(chosen.tables, "pythons")],
    )
    return ask(chosen, lambda shelf: remade(shelf, known, pythons))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
