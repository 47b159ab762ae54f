"""The command line of the scripts: print changes, `--write` them, or `--check` for them."""

from __future__ import annotations

import argparse
import datetime
import difflib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

from remaking.index import PipIndex, Unreachable
from remaking.sheets import Row, rewritten, sheet
from remaking.wheels import CACHE, Shelf

TABLES = Path(__file__).parents[2] / "src" / "provision" / "facts" / "tables"


@dataclass(frozen=True, slots=True)
class Remade:
    """One list of a table as it was read anew: the file's stem, the list's name, the columns of its
    key, and all its rows.

    `newest` gives what the table must not lack: of each newest release on the index, values that
    some row has. `whole` tells that nothing in the file rests
    on other sources, so that its date is that of this reading.
    """

    table: str
    name: str
    key: tuple[str, ...]
    rows: tuple[Row, ...]
    newest: tuple[Row, ...] = ()
    whole: bool = True


def options(arguments: Sequence[str], about: str, *, newest: bool = False) -> argparse.Namespace:
    """Return the options that all scripts have, and how many releases to read where a script can
    read the `newest` alone.
    """
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--write", action="store_true", help="change the table; then run `make facts`"
    )
    mode.add_argument(
        "--check", action="store_true", help="change nothing, exit 1 when the table differs"
    )
    parser.add_argument(
        "--tables",
        type=Path,
        default=TABLES,
        help="folder of the tables (default: those of this checkout)",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=CACHE,
        help="folder where parts of wheels are kept for the next run (default: .cache/remake)",
    )
    if newest:
        parser.add_argument(
            "--newest",
            type=int,
            help="read only that many releases, the newest; the others stay as they are",
        )
    return parser.parse_args(arguments)


def finish(chosen: argparse.Namespace, remade: Iterable[Remade], today: datetime.date) -> int:
    """Compare what was read with the tables and do what was chosen; return the exit code, which is
    1 as long as a newest release is missing.
    """
    code = 0
    for part in remade:
        path = chosen.tables / f"{part.table}.yaml"
        text = path.read_text(encoding="utf-8")
        old = sheet(text, part.name)
        known = [row.values for row in old.rows]
        told = [*missing(known, part), *differences(known, part)]
        print(
            "\n".join(told) if told else f"{part.table}.{part.name}: as read, {len(part.rows)} rows"
        )
        new = rewritten(old, part.key, part.rows)
        if chosen.write:
            path.write_text(dated(new, today) if part.whole else new, encoding="utf-8")
        elif told and not chosen.check:
            sys.stdout.writelines(
                difflib.unified_diff(
                    text.splitlines(True),
                    new.splitlines(True),
                    path.name,
                    f"{path.name} as read",
                    n=0,
                )
            )
        fails = any(missing(part.rows if chosen.write else known, part)) or (chosen.check and told)
        code |= int(bool(fails))
    return code


def ask(chosen: argparse.Namespace, read: Callable[[Shelf], Iterable[Remade]]) -> int:
    """Run a script on the index of pip's configuration; one that cannot be asked is a line and exit
    2. How much was read goes to stderr.
    """
    index = PipIndex()
    try:
        code = finish(
            chosen, read(Shelf(index, chosen.cache)), datetime.datetime.now(tz=datetime.UTC).date()
        )
    except (Unreachable, OSError, BadZipFile) as error:
        print(f"cannot read anew: {error}", file=sys.stderr)
        return 2
    print(f"read {index.received / 1e6:.1f} MB from the index", file=sys.stderr)
    return code


def missing(rows: Iterable[Row], part: Remade) -> Iterator[str]:
    """Yield a line for each newest release that no row has."""
    listed = list(rows)
    for values in part.newest:
        if not any(values.items() <= row.items() for row in listed):
            (
                yield f"MISSING: {part.table}.{part.name} lacks {' '.join(values.values())}, the "
                "newest release on the index"
            )


def differences(rows: Iterable[Row], part: Remade) -> Iterator[str]:
    """Yield a line for each cell and row of the table that differs from what was read."""
    known, read = (
        {tuple(row[name] for name in part.key): row for row in listed}
        for listed in (rows, part.rows)
    )
    for key in (*known, *(key for key in read if key not in known)):
        place = f"{part.table}.{part.name} {' '.join(str(word) for word in key)}"
        if key not in read:
            yield f"{place}: in the table, not as read"
        elif key not in known:
            yield f"{place}: read, not in the table"
        else:
            yield from (f"{place}: {cell}" for cell in _cells(known[key], read[key]))


def dated(text: str, today: datetime.date) -> str:
    """Return a table that says it was read today."""
    return re.sub(r"^as_of: .*$", f"as_of: {today.isoformat()}", text, count=1, flags=re.MULTILINE)


def rows_of(tables: Path, table: str, name: str = "rows") -> list[Row]:
    """Return the rows of a list as the table has them."""
    return [
        row.values
        for row in sheet((tables / f"{table}.yaml").read_text(encoding="utf-8"), name).rows
    ]


def _cells(known: Row, read: Row) -> Iterator[str]:
    for name in dict.fromkeys((*known, *read)):
        if known.get(name) != read.get(name):
            yield f"{name} is {known.get(name, 'absent')!r}, read {read.get(name, 'absent')!r}"
