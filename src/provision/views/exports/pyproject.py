"""A locked environment as a uv project: the spec's requirements, held to what was locked by constraints and sources."""

from __future__ import annotations

from collections.abc import Iterator

from provision.lock.portion import Held, Portion
from provision.spec import Spec
from provision.views.exports import MADE_BY
from provision.views.exports.toml import string, strings, table


def text(portion: Portion, spec: Spec) -> str:
    """Return a pyproject.toml in whose folder `uv lock` chooses the versions that the lock holds.

    uv binds only what a project asks for itself to an index, so what is locked from another index than the default one stands among the dependencies too.
    """
    bound = sorted({held.package.name for held in portion.held if held.package.index != "pypi"})
    asked = [package.requirement for package in spec.packages]
    more = [_brought(name, portion) for name in bound if spec.package(name) is None]
    lines = [
        f"# {MADE_BY} --format pyproject` from lock {portion.digest}",
        "[project]",
        f"name = {string(spec.name)}",
        'version = "0"',
        f"requires-python = {string(f'=={portion.python}.*')}",
        f"dependencies = {strings([*asked, *more])}",
        "",
        "[tool.uv]",
        "package = false",
        f"environments = {strings(portion.markers)}",
        f"required-environments = {strings(portion.markers)}",
        *([f"exclude-newer = {string(spec.exclude_newer)}"] if spec.exclude_newer else []),
        f"constraint-dependencies = {strings([_pin(held) for held in portion.held])}",
        *_indexes(portion),
    ]
    sources = [f"{name} = [{', '.join(_source(held) for held in portion.held_of(name) if held.package.index != 'pypi')}]" for name in bound]
    return "\n".join([*lines, *(["", "[tool.uv.sources]", *sources] if sources else [])]) + "\n"


def _brought(name: str, portion: Portion) -> str:
    marker = portion.marker_of(*(held.package for held in portion.held_of(name)))
    return f"{name} ; {marker}" if marker else name


def _pin(held: Held) -> str:
    return f"{held.package.name}=={held.package.version}" + (f" ; {held.marker}" if held.marker else "")


def _indexes(portion: Portion) -> Iterator[str]:
    for name, url in portion.indexes.items():
        if name != "pypi":
            yield from ("", "[[tool.uv.index]]", f"name = {string(name)}", f"url = {string(url)}", "explicit = true")


def _source(held: Held) -> str:
    return table(index=held.package.index, marker=held.marker) if held.marker else table(index=held.package.index)
