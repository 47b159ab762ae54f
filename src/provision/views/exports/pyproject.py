"""A locked environment as a uv project: requirements, with constraints and sources."""

from __future__ import annotations

from collections.abc import Iterator

from provision.lock.origins import LockedOrigin
from provision.lock.target_view import TargetView, ViewedPackage
from provision.spec import Spec
from provision.views.exports import MADE_BY
from provision.views.exports.toml import to_toml_array, to_toml_string, to_toml_table


def render_pyproject(view: TargetView, spec: Spec) -> str:
    """Return a pyproject.toml with which `uv lock` chooses the locked versions.

    uv binds only a project's own dependencies to an index, so packages of another index than the
    default one are among the dependencies.
    """
    bound = sorted({one.package.name for one in view.indexed if one.package.index != "pypi"})
    origins = {one.package.name: one.package.origin for one in view.packages if one.package.origin}
    requirements = [package.requirement for package in spec.packages]
    requirements += [
        _additional_requirement(name, view) for name in bound if spec.package(name) is None
    ]
    lines = [
        f"# {MADE_BY} --format pyproject` from lock {view.digest}",
        "[project]",
        f"name = {to_toml_string(spec.name)}",
        'version = "0"',
        f"requires-python = {to_toml_string(f'=={view.python}.*')}",
        f"dependencies = {to_toml_array(requirements)}",
        "",
        "[tool.uv]",
        "package = false",
        f"environments = {to_toml_array(view.markers)}",
        f"required-environments = {to_toml_array(view.markers)}",
    ]
    if spec.exclude_newer:
        lines.append(f"exclude-newer = {to_toml_string(spec.exclude_newer)}")
    lines += [
        f"constraint-dependencies = {to_toml_array([_pin(viewed) for viewed in view.indexed])}",
        *_indexes(view),
    ]
    if bound or origins:
        lines += ["", "[tool.uv.sources]", *(_sources(name, view) for name in bound)]
        lines += (f"{name} = {_origin(origin)}" for name, origin in sorted(origins.items()))
    return "\n".join(lines) + "\n"


def _additional_requirement(name: str, view: TargetView) -> str:
    marker = view.marker_of(*(viewed.package for viewed in view.packages_named(name)))
    return f"{name} ; {marker}" if marker else name


def _pin(viewed: ViewedPackage) -> str:
    pin = f"{viewed.package.name}=={viewed.package.version}"
    return f"{pin} ; {viewed.marker}" if viewed.marker else pin


def _indexes(view: TargetView) -> Iterator[str]:
    for name, url in view.indexes.items():
        if name != "pypi":
            yield from (
                "",
                "[[tool.uv.index]]",
                f"name = {to_toml_string(name)}",
                f"url = {to_toml_string(url)}",
                "explicit = true",
            )


def _origin(origin: LockedOrigin) -> str:
    if origin.path:
        editable = ", editable = true" if origin.editable else ""
        return f"{{ path = {to_toml_string(origin.path)}{editable} }}"
    fields = {"git": origin.git, "rev": origin.commit}
    if origin.subdirectory:
        fields["subdirectory"] = origin.subdirectory
    return to_toml_table(**fields)


def _sources(name: str, view: TargetView) -> str:
    tables = []
    for viewed in view.packages_named(name):
        fields = {"index": viewed.package.index}
        if viewed.marker:
            fields["marker"] = viewed.marker
        if viewed.package.index != "pypi":
            tables.append(to_toml_table(**fields))
    return f"{name} = [{', '.join(tables)}]"
