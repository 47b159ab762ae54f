"""A locked environment as pylock.toml (PEP 751, lock-version 1.0): what to fetch from where, with a hash for every file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from provision.lock.model import File
from provision.lock.portion import Held, Portion, is_wheel
from provision.views.exports import MADE_BY
from provision.views.exports.toml import string, strings


def text(portion: Portion, addresses: Mapping[tuple[str, str], str]) -> str:
    """Return the document; `addresses` holds the URL of each file by (package name, file name)."""
    lines = [
        f"# {MADE_BY} --format pylock`: change the spec, lock, and export again.",
        'lock-version = "1.0"',
        f"environments = {strings(portion.markers)}",
        f"requires-python = {string(f'=={portion.python}.*')}",
        'created-by = "provision"',
    ]
    for held in portion.held:
        lines += ["", *_package(held, portion.indexes[held.package.index], addresses)]
    keys = strings([environment.key for environment in portion.environments])
    return "\n".join([*lines, "", "[tool.provision]", f"lock = {string(portion.digest)}", f"environments = {keys}"]) + "\n"


def _package(held: Held, index: str, addresses: Mapping[tuple[str, str], str]) -> Iterator[str]:
    package = held.package
    yield "[[packages]]"
    yield f"name = {string(package.name)}"
    yield f"version = {string(package.version)}"
    if held.marker:
        yield f"marker = {string(held.marker)}"
    if index:
        yield f"index = {string(index)}"
    for source in (file for file in package.files if not is_wheel(file)):
        yield f"sdist = {_file(source, addresses[package.name, source.name])}"
    wheels = [_file(file, addresses[package.name, file.name]) for file in package.files if is_wheel(file)]
    if wheels:
        yield "wheels = [\n" + "".join(f"    {wheel},\n" for wheel in wheels) + "]"


def _file(file: File, url: str) -> str:
    return f"{{ name = {string(file.name)}, url = {string(url)}, hashes = {{ sha256 = {string(file.sha256)} }} }}"
