"""A locked environment as a uv project: the spec's requirements, held to what was locked by
constraints and sources.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.lock.target_view import TargetView, ViewedPackage
from provision.spec import Spec
from provision.views.exports import MADE_BY
from provision.views.exports.toml import to_toml_array, to_toml_string, to_toml_table


def render_pyproject(portion: TargetView, spec: Spec) -> str:
    """Return a pyproject.toml in whose folder `uv lock` chooses the versions that the lock holds.

    uv binds only what a project asks for itself to an index, so what is locked from another
    index than the default one stands among the dependencies too.
    """
    bound = sorted({held.package.name for held in portion.packages if held.package.index != "pypi"})
    asked = [package.requirement for package in spec.packages]
    more = [_additional_requirement(name, portion) for name in bound if spec.package(name) is None]
    lines = [
        f"# {MADE_BY} --format pyproject` from lock {portion.digest}",
        "[project]",
        f"name = {to_toml_string(spec.name)}",
        'version = "0"',
        f"requires-python = {to_toml_string(f'=={portion.python}.*')}",
        f"dependencies = {to_toml_array([*asked, *more])}",
        "",
        "[tool.uv]",
        "package = false",
        f"environments = {to_toml_array(portion.markers)}",
        f"required-environments = {to_toml_array(portion.markers)}",
        *([f"exclude-newer = {to_toml_string(spec.exclude_newer)}"] if spec.exclude_newer else []),
        f"constraint-dependencies = {to_toml_array([_pin(held) for held in portion.packages])}",
        *_indexes(portion),
    ]
    sources = [
        f"{name} = "
        f"[{', '.join(_source(held) for held in portion.packages_named(name) if held.package.index != 'pypi')}]"  # noqa: E501
        for name in bound
    ]
    return "\n".join([*lines, *(["", "[tool.uv.sources]", *sources] if sources else [])]) + "\n"


def _additional_requirement(name: str, portion: TargetView) -> str:
    marker = portion.marker_of(*(held.package for held in portion.packages_named(name)))
    return f"{name} ; {marker}" if marker else name


def _pin(held: ViewedPackage) -> str:
    return f"{held.package.name}=={held.package.version}" + (
        f" ; {held.marker}" if held.marker else ""
    )


def _indexes(portion: TargetView) -> Iterator[str]:
    for name, url in portion.indexes.items():
        if name != "pypi":
            yield from (
                "",
                "[[tool.uv.index]]",
                f"name = {to_toml_string(name)}",
                f"url = {to_toml_string(url)}",
                "explicit = true",
            )


def _source(held: ViewedPackage) -> str:
    return (
        to_toml_table(index=held.package.index, marker=held.marker)
        if held.marker
        else to_toml_table(index=held.package.index)
    )
