"""Solves conda requirements for the virtual packages of a target, with py-rattler."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from provision.adapters.conda.channels import (
    channel_urls,
    open_gateway,
    require_rattler,
    unreachable_error,
)
from provision.effects.conda import CONDA_SUBDIRS, CondaMatchSpec, CondaRecord, CondaSolveRequest
from provision.errors import LockError, Unsatisfiable
from provision.sanitize import escape_control, redact

if TYPE_CHECKING:
    from rattler import Gateway, MatchSpec, RepoDataRecord

_MAX_ITEMS = 6
_ARCHSPEC = {
    "linux-64": "x86_64",
    "linux-aarch64": "aarch64",
    "osx-arm64": "arm64",
    "win-64": "x86_64",
}


def solve(
    request: CondaSolveRequest, environment: Mapping[str, str], *, offline: bool = False
) -> tuple[CondaRecord, ...]:
    """Return the packages that satisfy a request, sorted by name. May block for minutes.

    Raises:
        Unsatisfiable: a channel lacks a package, or no set of packages fits.
        LockError: conda cannot read a version.
        NetworkError: a channel cannot be reached.
        ExternalError: the extra `conda` is not installed.
    """
    require_rattler()
    from rattler.exceptions import GatewayError, InvalidMatchSpecError, SolverError

    urls = channel_urls(request.channels, environment)
    cache_action = "force-cache-only" if offline else "cache-or-fetch"
    gateway = open_gateway(request.channels, environment, cache_action=cache_action)
    try:
        return asyncio.run(_solve(request, urls, gateway))
    except GatewayError as error:
        raise unreachable_error(str(error), urls, offline=offline) from None
    except InvalidMatchSpecError as error:
        raise LockError(
            "a conda package has an invalid version",
            why=escape_control(str(error)),
            hint="use conda's version syntax, such as 12.8.* or >=6,<7",
        ) from None
    except SolverError as error:
        reason = str(error).removeprefix("Cannot solve the request because of: ").strip()
        for name, url in urls.items():
            reason = reason.replace(f' [channel="{url}"]', f" of {name}")
        raise Unsatisfiable(
            f"no set of conda packages satisfies the spec on {request.platform}",
            why=redact(escape_control(reason)),
        ) from None


def to_repodata_record(record: CondaRecord, channel_url: str) -> RepoDataRecord:
    """Return a locked record as py-rattler's type, with its address below a channel's."""
    rattler = require_rattler()
    package = rattler.PackageRecord(
        record.name,
        record.version,
        rattler.BuildString(record.build),
        record.number,
        record.subdir,
        noarch=record.noarch or None,
        depends=list(record.depends),
        constrains=list(record.constrains),
        sha256=bytes.fromhex(record.sha256),
        md5=bytes.fromhex(record.md5) if record.md5 else None,
    )
    url = f"{channel_url}{record.subdir}/{record.file}"
    converted: RepoDataRecord = rattler.RepoDataRecord(package, record.file, url, channel_url)
    return converted


def format_last_items(texts: list[str]) -> str:
    """Return the last of some texts, each once, after the number of those left out."""
    unique = list(dict.fromkeys(texts))
    shown = unique[-_MAX_ITEMS:]
    if len(unique) > _MAX_ITEMS:
        shown.insert(0, f"{len(unique) - _MAX_ITEMS} more")
    return ", ".join(shown)


async def _solve(
    request: CondaSolveRequest, urls: Mapping[str, str], gateway: Gateway
) -> tuple[CondaRecord, ...]:
    rattler = require_rattler()
    subdir: Any = CONDA_SUBDIRS[request.platform]
    specs = [_to_match_spec(requirement, urls) for requirement in request.match_specs]
    listed = await gateway.query(
        list(urls.values()),
        [subdir, "noarch"],
        [requirement.name for requirement in request.match_specs],
        recursive=False,
    )
    available = [record for records in listed for record in records]
    for requirement, spec in zip(request.match_specs, specs, strict=True):
        _refuse_missing_package(requirement, spec, available, urls, request.platform)
    solution = await rattler.solve(
        list(urls.values()),
        specs,
        gateway=gateway,
        platforms=[subdir, "noarch"],
        locked_packages=[
            to_repodata_record(record, urls[record.channel])
            for record in request.keep
            if record.channel in urls
        ],
        virtual_packages=[
            _to_virtual_package(name, version, subdir) for name, version in request.virtual_packages
        ],
        constraints=[_to_match_spec(constraint, urls) for constraint in request.constraints],
        exclude_newer=_end_of_day(request.exclude_newer),
    )
    return tuple(sorted(_to_conda_record(record, urls) for record in solution))


def _to_match_spec(requirement: CondaMatchSpec, urls: Mapping[str, str]) -> MatchSpec:
    name = requirement.name
    if requirement.channel:
        name = f"{urls[requirement.channel]}::{name}"
    version = requirement.version or ("*" if requirement.build else "")
    parts = [part for part in (name, version, requirement.build) if part]
    spec: MatchSpec = require_rattler().MatchSpec(" ".join(parts))
    return spec


def _to_virtual_package(name: str, version: str, subdir: str) -> Any:
    rattler = require_rattler()
    build = _ARCHSPEC[subdir] if name == "__archspec" else "0"
    return rattler.GenericVirtualPackage(
        rattler.PackageName(name), rattler.Version(version), rattler.BuildString(build)
    )


def _end_of_day(day: str | None) -> datetime | None:
    if day is None:
        return None
    if len(day) == 10:
        return datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(days=1)
    return datetime.fromisoformat(day)


def _refuse_missing_package(
    requirement: CondaMatchSpec,
    spec: MatchSpec,
    available: list[RepoDataRecord],
    urls: Mapping[str, str],
    platform: str,
) -> None:
    """Raise Unsatisfiable, with what the channel does have, if no file matches a requirement."""
    channel_url = urls.get(requirement.channel, "")
    same_name = [
        record
        for record in available
        if record.name.normalized == requirement.name.lower()
        and str(record.url).startswith(channel_url)
    ]
    if any(spec.matches(record) for record in same_name):
        return
    lacks = f"channel {requirement.channel} has no" if requirement.channel else "no channel has"
    if not same_name:
        raise Unsatisfiable(
            f"{lacks} package {requirement.name} for {platform}",
            hint="check the spelling, or set `channel` to the channel that has the package",
        )
    any_build = require_rattler().MatchSpec(f"{requirement.name} {requirement.version}".strip())
    builds = [str(record.build) for record in same_name if any_build.matches(record)]
    if builds:
        raise Unsatisfiable(
            f"{lacks} build {requirement.build} of {requirement.name} "
            f"{requirement.version} for {platform}",
            why=f"available builds for that version: {format_last_items(builds)}",
        )
    by_version = sorted(same_name, key=lambda record: record.version)
    versions = format_last_items([str(record.version) for record in by_version])
    raise Unsatisfiable(
        f"{lacks} {requirement.name} {requirement.version} for {platform}",
        why=f"available versions: {versions}",
    )


def _to_conda_record(record: RepoDataRecord, urls: Mapping[str, str]) -> CondaRecord:
    channel = next(name for name, url in urls.items() if str(record.url).startswith(url))
    if record.sha256 is None:
        raise LockError(
            f"channel {channel} lists no sha256 for {record.file_name}",
            hint="use a channel that lists sha256 hashes",
        )
    noarch = ""
    if record.noarch.python:
        noarch = "python"
    elif record.noarch.generic:
        noarch = "generic"
    return CondaRecord(
        record.name.normalized,
        str(record.version),
        str(record.build),
        record.build_number,
        noarch,
        channel,
        str(record.subdir),
        str(record.file_name),
        record.sha256.hex(),
        record.md5.hex() if record.md5 else "",
        tuple(str(dependency) for dependency in record.depends),
        tuple(str(constraint) for constraint in record.constrains),
    )
