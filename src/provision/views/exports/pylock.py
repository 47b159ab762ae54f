"""A locked environment as pylock.toml (PEP 751, lock-version 1.0), with a hash for every file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from provision.lock.model import LockedFile
from provision.lock.origins import LockedOrigin
from provision.lock.target_view import TargetView, ViewedPackage, is_wheel
from provision.views.exports import MADE_BY
from provision.views.exports.toml import to_toml_array, to_toml_string, to_toml_table


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
        index = view.indexes.get(viewed.package.index, "")
        lines += ["", *_package(viewed, index, addresses)]
    keys = to_toml_array([environment.key for environment in view.environments])
    lines += ["", "[tool.provision]", f"lock = {to_toml_string(view.digest)}"]
    return "\n".join([*lines, f"environments = {keys}"]) + "\n"


def _package(
    viewed: ViewedPackage, index: str, addresses: Mapping[tuple[str, str], str]
) -> Iterator[str]:
    package, origin = viewed.package, viewed.package.origin
    yield "[[packages]]"
    is_tree = origin is not None and not origin.is_wheel
    for key, value in (
        ("name", package.name),
        # PEP 751: not of a source tree, whose version can change.
        ("version", "" if is_tree else package.version),
        ("marker", viewed.marker),
        ("index", index),
    ):
        if value:
            yield f"{key} = {to_toml_string(value)}"
    if origin is not None and is_tree:
        yield _source_tree(origin)
        return
    wheels = ""
    for file in package.files:
        place = (
            ("url", addresses[package.name, file.name]) if origin is None else ("path", origin.path)
        )
        table = _file(file, *place)
        if is_wheel(file):
            wheels += f"    {table},\n"
        else:
            yield f"sdist = {table}"
    if wheels:
        yield f"wheels = [\n{wheels}]"


def _source_tree(origin: LockedOrigin) -> str:
    if origin.path:
        editable = ", editable = true" if origin.editable else ""
        return f"directory = {{ path = {to_toml_string(origin.path)}{editable} }}"
    fields = {"type": "git", "url": origin.git, "commit-id": origin.commit}
    if origin.subdirectory:
        fields["subdirectory"] = origin.subdirectory
    return f"vcs = {to_toml_table(**fields)}"


def _file(file: LockedFile, key: str, place: str) -> str:
    return (
        f"{{ name = {to_toml_string(file.name)}, {key} = {to_toml_string(place)}, hashes = {{ "
        f"sha256 = {to_toml_string(file.sha256)} }} }}"
    )
