"""A locked environment as conda's own documents: environment.yml and an explicit list."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from provision.effects.conda import CondaRecord
from provision.lock.target_view import TargetView, is_wheel
from provision.views.exports import MADE_BY

_PUBLIC_CHANNEL = "conda-forge"


def render_environment_yml(
    portion: TargetView, name: str, asked: frozenset[str], channels: Mapping[str, str]
) -> str:
    """Return environment.yml: conda packages by version and build, index packages by hash.

    `asked` are the conda names in the spec, `channels` the addresses of channels that conda does
    not know by name.
    """
    first = [package for package in portion.conda if package.name in asked]
    rest = [package for package in portion.conda if package.name not in asked]
    lines = [
        *_head(portion, "environment.yml"),
        "# Make it with: conda env create --file FILE --prefix FOLDER",
        f"name: {json.dumps(name)}",
        "channels:",
        *(f"  - {json.dumps(channels.get(channel, channel))}" for channel in _channels(portion)),
        "dependencies:",
        *(f"  - {json.dumps(_spec(package, channels))}" for package in first),
        *(["  # What those need:"] if rest else []),
        *(f"  - {json.dumps(_spec(package, channels))}" for package in rest),
    ]
    indexed = list(_indexed(portion))
    return (
        "\n".join(
            [
                *lines,
                *(["  - pip:"] if indexed else []),
                *(f"      - {json.dumps(line)}" for line in indexed),
            ]
        )
        + "\n"
    )


def render_explicit_list(portion: TargetView, roots: Mapping[str, str]) -> str:
    """Return an explicit list for `conda create --file`, without packages of the index.

    `roots` holds the address of every channel.
    """
    platform = next(
        (package.subdir for package in portion.conda if package.subdir != "noarch"), "noarch"
    )
    lines = [
        *_head(portion, "conda-explicit"),
        "# Make it with: conda create --prefix FOLDER --file FILE",
        (
            "# Then install what `provision export --format requirements` writes, with the pip "
            "of that folder, as its third line says."
        ),
        f"# platform: {platform}",
        "@EXPLICIT",
    ]
    return (
        "\n".join(
            [
                *lines,
                *(
                    f"{roots[p.channel]}{p.subdir}/{p.file}#{p.md5 or 'sha256:' + p.sha256}"
                    for p in portion.conda
                ),
            ]
        )
        + "\n"
    )


def _head(portion: TargetView, form: str) -> Iterator[str]:
    yield f"# {MADE_BY} --format {form}`: change the spec, lock, and export again."
    (
        yield f"# For Python {portion.python} on "
        f"{', '.join(environment.key for environment in portion.environments)}; lock "
        f"{portion.digest}"
    )


def _channels(portion: TargetView) -> list[str]:
    """Return the channels in conda's order.

    The public one is last, so that private packages are not searched there first.
    """
    return sorted(
        {package.channel for package in portion.conda},
        key=lambda name: (name == _PUBLIC_CHANNEL, name),
    )


def _spec(package: CondaRecord, channels: Mapping[str, str]) -> str:
    bound = (
        ""
        if package.channel == _PUBLIC_CHANNEL
        else f"{channels.get(package.channel, package.channel).rstrip('/')}::"
    )
    return f"{bound}{package.name}={package.version}={package.build}"


def _indexed(portion: TargetView) -> Iterator[str]:
    """Yield the lines that conda hands to pip; pip wants hashes for all lines or none."""
    if not portion.packages:
        return
    yield from (
        f"{'--extra-index-url' if number else '--index-url'} {url}"
        for number, url in enumerate(portion.indexes.values())
        if url
    )
    yield "--only-binary :all:"
    yield from (
        f"--no-binary {held.package.name}"
        for held in portion.packages
        if not all(is_wheel(file) for file in held.package.files)
    )
    for held in portion.packages:
        hashes = " ".join(
            f"--hash=sha256:{sha256}"
            for sha256 in sorted({file.sha256 for file in held.package.files})
        )
        yield f"{held.package.name}=={held.package.version} {hashes}"
