"""The reference page of the windows between packages: every pair, and every window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from provision.facts import Facts
from provision.facts.schema_windows import ReadReleases, ReleaseWindow

_HEAD = """\
# Windows between packages

A window is a range of releases of one package that use a name which only some releases of another \
package have, although they declare no such requirement. [PKG010](rules.md#pkg010) reports specs \
and locked sets in which a window is broken, and `provision lock` adds a bound for each one that \
makes an import fail.

`support/remake_windows.py` finds them in the wheels on the package index ([Facts](facts.md)). It \
reads Python files as text. It counts what runs when the package or its main classes are imported \
(*error*), and the imports and calls of further entry points (*warning*). It does not count what \
runs in a `try`, under a condition about a version or for type checkers, names of compiled \
modules, and calls in other modules. A method that replaces one of another package, with \
parameters that its class does not pass in some releases, is a warning too, written with these \
parameters (`transformers.Trainer.log(logs)`). PKG010 reports errors, and warnings about arguments \
and parameters. Names for which the same module has a substitute are left out: those that it also \
imports in a `try` or under a condition, and those that it assigns. So a pair without a window can \
still have releases that do not fit.
"""


def window_page(facts: Facts, note: str) -> str:
    """Return the page, with a note above it."""
    read = facts.windows_read
    parts = [note, _HEAD.rstrip(), "## Releases that were read"]
    parts.append("\n".join(["| package | releases |", "|---|---|", *_read_rows(read.values())]))
    parts += ["## Pairs", _pair_count(facts)]
    parts.append("\n".join(["| packages | result |", "|---|---|", *_pair_rows(facts)]))
    parts.append("## Windows")
    head = ["| releases | need | because they use | in | defined | severity |", "|" + "---|" * 6]
    parts.append("\n".join([*head, *map(_window_row, facts.windows)]))
    return "\n\n".join(parts) + "\n"


def _read_rows(rows: Iterable[ReadReleases]) -> Iterator[str]:
    for row in rows:
        yield f"| {row.package} | {_span(row)} |"


def _span(row: ReadReleases) -> str:
    if not row.releases:
        return "not read"
    what = "" if row.uses else ", definitions only"
    return f"{row.releases[0]} to {row.releases[-1]} ({len(row.releases)}{what})"


def _pairs(facts: Facts) -> Iterator[tuple[ReadReleases, ReadReleases, Sequence[ReleaseWindow]]]:
    for one, other in combinations(facts.windows_read.values(), 2):
        names = {one.package, other.package}
        yield one, other, [row for row in facts.windows if {row.package, row.of} == names]


def _pair_count(facts: Facts) -> str:
    pairs = list(_pairs(facts))
    having = sum(1 for *_, windows in pairs if windows)
    unread = sum(1 for one, other, _ in pairs if not _is_read(one, other))
    return (
        f"{len(facts.windows)} windows between {having} of {len(pairs)} pairs; {unread} pairs were "
        "not read."
    )


def _pair_rows(facts: Facts) -> Iterator[str]:
    for one, other, windows in _pairs(facts):
        if windows:
            result = f"{len(windows)} window{'s' if len(windows) > 1 else ''}"
        elif _is_read(one, other):
            result = f"none found in {_range(one)} and {_range(other)}"
        else:
            result = "not read"
        yield f"| {one.package}, {other.package} | {result} |"


def _is_read(one: ReadReleases, other: ReadReleases) -> bool:
    """Return whether the uses of one package were compared with the other."""
    return bool(one.releases and other.releases) and (one.uses or other.uses)


def _range(row: ReadReleases) -> str:
    return f"{row.package} {row.releases[0]} to {row.releases[-1]}"


def _window_row(row: ReleaseWindow) -> str:
    last = f"to {row.last}" if row.last else "and newer"
    releases = f"{row.package} {row.first}" + ("" if row.last == row.first else f" {last}")
    threads = row.evidence.source.rpartition("; ")[2]
    return (
        f"| {releases} | `{row.of}{row.specifier}` | `{row.name}` | `{row.uses}` | {row.has} | "
        f"{row.severity}; {threads} |"
    )
