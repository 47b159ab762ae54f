"""A locked environment as pylock.toml (PEP 751, lock-version 1.0), with a hash for every file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from provision.lock.model import LockedFile
from provision.lock.target_view import TargetView, ViewedPackage, is_wheel
from provision.views.exports import MADE_BY
from provision.views.exports.toml import to_toml_array, to_toml_string


def render_pylock(portion: TargetView, addresses: Mapping[tuple[str, str], str]) -> str:
    """Return the document; `addresses` holds the URL of each file by (package name, file name)."""
    lines = [
        f"# {MADE_BY} --format pylock`: change the spec, lock, and export again.",
        'lock-version = "1.0"',
        f"environments = {to_toml_array(portion.markers)}",
        f"requires-python = {to_toml_string(f'=={portion.python}.*')}",
        'created-by = "provision"',
    ]
    for held in portion.packages:
        lines += ["", *_package(held, portion.indexes[held.package.index], addresses)]
    keys = to_toml_array([environment.key for environment in portion.environments])
    return (
        "\n".join(
            [
                *lines,
                "",
                "[tool.provision]",
                f"lock = {to_toml_string(portion.digest)}",
                f"environments = {keys}",
            ]
        )
        + "\n"
    )


def _package(
    held: ViewedPackage, index: str, addresses: Mapping[tuple[str, str], str]
) -> Iterator[str]:
    package = held.package
    yield "[[packages]]"
    yield f"name = {to_toml_string(package.name)}"
    yield f"version = {to_toml_string(package.version)}"
    if held.marker:
        yield f"marker = {to_toml_string(held.marker)}"
    if index:
        yield f"index = {to_toml_string(index)}"
    for source in (file for file in package.files if not is_wheel(file)):
        yield f"sdist = {_file(source, addresses[package.name, source.name])}"
    wheels = [
        _file(file, addresses[package.name, file.name]) for file in package.files if is_wheel(file)
    ]
    if wheels:
        yield "wheels = [\n" + "".join(f"    {wheel},\n" for wheel in wheels) + "]"


def _file(file: LockedFile, url: str) -> str:
    return (
        f"{{ name = {to_toml_string(file.name)}, url = {to_toml_string(url)}, hashes = {{ "
        f"sha256 = {to_toml_string(file.sha256)} }} }}"
    )
