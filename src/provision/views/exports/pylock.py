"""A locked environment as pylock.toml (PEP 751, lock-version 1.0), with a hash for every file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from provision.lock.model import LockedFile
from provision.lock.target_view import TargetView, ViewedPackage, is_wheel
from provision.views.exports import MADE_BY
from provision.views.exports.toml import to_toml_array, to_toml_string


def render_pylock(view: TargetView, addresses: Mapping[tuple[str, str], str]) -> str:
    """Return the document; `addresses` has the URL of each file by (package name, file name)."""
    lines = [
        f"# {MADE_BY} --format pylock`: change the spec, lock, and export again.",
        'lock-version = "1.0"',
        f"environments = {to_toml_array(view.markers)}",
        f"requires-python = {to_toml_string(f'=={view.python}.*')}",
        'created-by = "provision"',
    ]
    for viewed in view.packages:
        lines += ["", *_package(viewed, view.indexes[viewed.package.index], addresses)]
    keys = to_toml_array([environment.key for environment in view.environments])
    lines += ["", "[tool.provision]", f"lock = {to_toml_string(view.digest)}"]
    return "\n".join([*lines, f"environments = {keys}"]) + "\n"


def _package(
    viewed: ViewedPackage, index: str, addresses: Mapping[tuple[str, str], str]
) -> Iterator[str]:
    package = viewed.package
    yield "[[packages]]"
    for key, value in (
        ("name", package.name),
        ("version", package.version),
        ("marker", viewed.marker),
        ("index", index),
    ):
        if value:
            yield f"{key} = {to_toml_string(value)}"
    wheels = ""
    for file in package.files:
        table = _file(file, addresses[package.name, file.name])
        if is_wheel(file):
            wheels += f"    {table},\n"
        else:
            yield f"sdist = {table}"
    if wheels:
        yield f"wheels = [\n{wheels}]"


def _file(file: LockedFile, url: str) -> str:
    return (
        f"{{ name = {to_toml_string(file.name)}, url = {to_toml_string(url)}, hashes = {{ "
        f"sha256 = {to_toml_string(file.sha256)} }} }}"
    )
