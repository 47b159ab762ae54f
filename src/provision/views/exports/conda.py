"""A locked environment as conda's own documents: environment.yml and an explicit list."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from provision.effects.conda import CondaRecord
from provision.lock.target_view import TargetView
from provision.views.exports import MADE_BY
from provision.views.exports.requirements import (
    hash_options,
    index_options,
    packages_without_wheels,
)

_PUBLIC_CHANNEL = "conda-forge"


def render_environment_yml(
    view: TargetView, name: str, declared: frozenset[str], channels: Mapping[str, str]
) -> str:
    """Return environment.yml: conda packages by version and build, index packages by hash.

    `declared` are the conda names in the spec, `channels` the addresses of channels that conda
    does not know by name.
    """
    first = [record for record in view.conda if record.name in declared]
    rest = [record for record in view.conda if record.name not in declared]
    # The public channel is last, so that private packages are not searched there first.
    names = sorted(
        {record.channel for record in view.conda}, key=lambda n: (n == _PUBLIC_CHANNEL, n)
    )
    lines = [
        *_head(view, "environment.yml"),
        "# Create it with: conda env create --file FILE --prefix FOLDER",
        f"name: {json.dumps(name)}",
        "channels:",
        *(f"  - {json.dumps(channels.get(channel, channel))}" for channel in names),
        "dependencies:",
        *(f"  - {json.dumps(_match_spec(record, channels))}" for record in first),
    ]
    if rest:
        lines.append("  # Their dependencies:")
        lines += [f"  - {json.dumps(_match_spec(record, channels))}" for record in rest]
    if view.packages:
        lines.append("  - pip:")
        lines += [f"      - {json.dumps(line)}" for line in _pip_lines(view)]
    return "\n".join(lines) + "\n"


def render_explicit_list(view: TargetView, roots: Mapping[str, str]) -> str:
    """Return an explicit list for `conda create --file`, without packages of the index.

    `roots` has the address of every channel.
    """
    platforms = (record.subdir for record in view.conda if record.subdir != "noarch")
    lines = [
        *_head(view, "conda-explicit"),
        "# Create it with: conda create --prefix FOLDER --file FILE",
        (
            "# Then install the file from `provision export --format requirements` with the "
            "pip in that folder; its third line has the command."
        ),
        f"# platform: {next(platforms, 'noarch')}",
        "@EXPLICIT",
    ]
    for record in view.conda:
        digest = record.md5 or "sha256:" + record.sha256
        lines.append(f"{roots[record.channel]}{record.subdir}/{record.file}#{digest}")
    return "\n".join(lines) + "\n"


def _head(view: TargetView, form: str) -> tuple[str, str]:
    keys = ", ".join(environment.key for environment in view.environments)
    return (
        f"# {MADE_BY} --format {form}`: change the spec, lock, and export again.",
        f"# For Python {view.python} on {keys}; lock {view.digest}",
    )


def _match_spec(record: CondaRecord, channels: Mapping[str, str]) -> str:
    spec = f"{record.name}={record.version}={record.build}"
    if record.channel == _PUBLIC_CHANNEL:
        return spec
    return f"{channels.get(record.channel, record.channel).rstrip('/')}::{spec}"


def _pip_lines(view: TargetView) -> Iterator[str]:
    """Yield the lines that conda passes to pip; pip requires hashes for all lines or none."""
    yield from index_options(view)
    yield "--only-binary :all:"
    yield from (f"--no-binary {name}" for name in packages_without_wheels(view))
    for viewed in view.packages:
        package = viewed.package
        yield " ".join((f"{package.name}=={package.version}", *hash_options(package)))
