"""Conda channels through py-rattler: where they are, and what is solved of them for a target's
virtual packages.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from provision.effects import CondaChannel, CondaMatchSpec, CondaRecord, CondaSolveRequest
from provision.errors import ExternalError, LockError, NetworkError, Unsatisfiable
from provision.sanitize import escape_control, redact

if TYPE_CHECKING:
    from rattler import Gateway, MatchSpec, RepoDataRecord

SUBDIR_BY_PLATFORM = {
    "linux-x86_64": "linux-64",
    "linux-aarch64": "linux-aarch64",
    "macos-arm64": "osx-arm64",
    "windows-x86_64": "win-64",
}
"""What conda calls each platform."""
_MAX_ITEMS = 6
_ARCHSPEC = {
    "linux-64": "x86_64",
    "linux-aarch64": "aarch64",
    "osx-arm64": "arm64",
    "win-64": "x86_64",
}


def require_rattler() -> Any:
    """Import py-rattler; raises WorldError that says what to install when it is not there."""
    try:
        return import_module("rattler")
    except ImportError as error:
        from provision.extras import install_command

        why = (
            "conda packages are solved and installed by py-rattler, and there is no module rattler"
        )
        raise ExternalError(
            "the packages for conda environments are not installed",
            why=why,
            hint=install_command("conda"),
        ) from error


def channel_override_variable(channel: str) -> str:
    """Return the name of the variable that names a mirror of a channel."""
    return "PROVISION_CHANNEL_" + re.sub(r"[^A-Z0-9]", "_", channel.upper())


def channel_url(channel: CondaChannel, environment: Mapping[str, str]) -> str:
    """Return the address of a channel on this machine, ending in a slash; without credentials,
    since py-rattler writes it into its cache.
    """
    return _without_credentials(channel_url_with_credentials(channel, environment))


def channel_url_with_credentials(channel: CondaChannel, environment: Mapping[str, str]) -> str:
    """Return the address of a channel on this machine with its credentials, ending in a slash: for
    what sends them, and for nothing that is kept.
    """
    named = environment.get(channel_override_variable(channel.name)) or channel.url or channel.name
    return str(require_rattler().Channel(named).base_url).rstrip("/") + "/"


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def public_channel_url(channel: CondaChannel) -> str:
    """Return the address of a channel on any machine, ending in a slash."""
    return channel_url(channel, {})


def override_notes(
    channels: tuple[CondaChannel, ...], environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Return what a person should know about where channels are on this machine."""
    variables = [(channel.name, channel_override_variable(channel.name)) for channel in channels]
    return tuple(
        f"conda channel {name}: {redact(environment[variable])} ({variable})"
        for name, variable in variables
        if environment.get(variable)
    )


def solve(
    ask: CondaSolveRequest, environment: Mapping[str, str], *, offline: bool = False
) -> tuple[CondaRecord, ...]:
    """Return what satisfies an ask, by name; the machine that asks is not looked at.

    Raises Unsatisfiable for what no channel has, or has in no set that fits, LockError for a
    version that conda cannot read, NetworkError when a channel
    cannot be reached, WorldError when py-rattler is missing.
    """
    rattler = require_rattler()
    from rattler.exceptions import GatewayError, InvalidMatchSpecError, SolverError

    addresses = {channel.name: channel_url(channel, environment) for channel in ask.channels}
    try:
        return asyncio.run(
            _solve(
                ask,
                addresses,
                _gateway(
                    rattler,
                    ask.channels,
                    environment,
                    cache_action="force-cache-only" if offline else "cache-or-fetch",
                ),
            )
        )
    except GatewayError as error:
        raise _channel_unreachable(str(error), addresses, offline=offline) from None
    except InvalidMatchSpecError as error:
        raise LockError(
            "a version of a conda package cannot be read",
            why=escape_control(str(error)),
            hint="write it as conda does, as in 12.8.* or >=6,<7",
        ) from None
    except SolverError as error:
        why = redact(
            escape_control(
                _with_channel_names(
                    str(error).removeprefix("Cannot solve the request because of: ").strip(),
                    addresses,
                )
            )
        )
        raise Unsatisfiable(f"no set of conda packages fits on {ask.platform}", why=why) from None


def list_hashes(
    records: Sequence[CondaRecord],
    channels: tuple[CondaChannel, ...],
    environment: Mapping[str, str],
) -> dict[tuple[str, str, str], str]:
    """Return the sha256 (hexadecimal, "" for none) of what channels list now under the names of
    some records, by (channel, subdir, file).

    Raises NetworkError when a channel cannot be reached, WorldError when py-rattler is missing.
    """
    rattler = require_rattler()
    from rattler.exceptions import GatewayError

    addresses = {channel.name: channel_url(channel, environment) for channel in channels}
    gateway = _gateway(rattler, channels, environment, cache_action="no-cache")
    found = {}
    try:
        for channel, root in addresses.items():
            here = [record for record in records if record.channel == channel]
            subdirs: Any = sorted({record.subdir for record in here})
            names = sorted({record.name for record in here})
            for source in asyncio.run(gateway.query([root], subdirs, names, recursive=False)):
                found.update(
                    {
                        (channel, str(row.subdir), str(row.file_name)): row.sha256.hex()
                        if row.sha256
                        else ""
                        for row in source
                    }
                )
    except GatewayError as error:
        raise _channel_unreachable(str(error), addresses, offline=False) from None
    return found


def _with_channel_names(said: str, addresses: Mapping[str, str]) -> str:
    """Return what the solver says with channels by name, as a spec has them."""
    for name, root in addresses.items():
        said = said.replace(f' [channel="{root}"]', f" of {name}")
    return said


async def _solve(
    ask: CondaSolveRequest, addresses: Mapping[str, str], gateway: Gateway
) -> tuple[CondaRecord, ...]:
    rattler = require_rattler()
    subdir: Any = SUBDIR_BY_PLATFORM[ask.platform]
    wishes = [_match_spec(rattler, wish, addresses) for wish in ask.match_specs]
    listed = await gateway.query(
        list(addresses.values()),
        [subdir, "noarch"],
        [wish.name for wish in ask.match_specs],
        recursive=False,
    )
    there = [record for source in listed for record in source]
    for wish, spec in zip(ask.match_specs, wishes, strict=True):
        _refuse_missing_package(wish, spec, there, addresses, ask.platform)
    found = await rattler.solve(
        list(addresses.values()),
        wishes,
        gateway=gateway,
        platforms=[subdir, "noarch"],
        locked_packages=[
            to_repodata_record(rattler, record, addresses[record.channel])
            for record in ask.keep
            if record.channel in addresses
        ],
        virtual_packages=[
            _virtual(rattler, name, version, subdir) for name, version in ask.virtual_packages
        ],
        constraints=[_match_spec(rattler, bound, addresses) for bound in ask.constraints],
        exclude_newer=_end_of_day(ask.exclude_newer),
    )
    return tuple(sorted(_to_conda_record(record, addresses) for record in found))


def http_client(
    rattler: Any, channels: tuple[CondaChannel, ...], environment: Mapping[str, str]
) -> Any:
    """Return a client that sends the credentials in a channel's address to that channel's host and
    path, and to no other.
    """
    from rattler.networking import AddHeadersMiddleware, AuthenticationMiddleware, RetryMiddleware

    known = []
    for parts in (
        urlsplit(channel_url_with_credentials(channel, environment)) for channel in channels
    ):
        if "@" in parts.netloc:
            word = base64.b64encode(unquote(parts.netloc.rpartition("@")[0]).encode()).decode()
            known.append((parts.hostname, parts.path, {"Authorization": f"Basic {word}"}))
    if not known:
        return rattler.Client.default_client(max_retries=1)

    def headers(host: str, path: str) -> dict[str, str] | None:
        return next(
            (header for at, below, header in known if at == host and path.startswith(below)), None
        )

    return rattler.Client(
        [RetryMiddleware(1), AuthenticationMiddleware(), AddHeadersMiddleware(headers)]
    )


def _gateway(
    rattler: Any,
    channels: tuple[CondaChannel, ...],
    environment: Mapping[str, str],
    *,
    cache_action: str,
) -> Gateway:
    asking = http_client(rattler, channels, environment)
    config = rattler.SourceConfig(cache_action=cache_action)
    gateway: Gateway = rattler.Gateway(
        cache_dir=cache_folder(environment) / "repodata", default_config=config, client=asking
    )
    return gateway


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return where files of channels are kept: a place of our own, so that nothing of the user's
    conda is touched.
    """
    root = (
        environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME") or Path.home()) / ".cache"
    )
    return Path(root) / "provision" / "conda"


def _match_spec(rattler: Any, wish: CondaMatchSpec, addresses: Mapping[str, str]) -> MatchSpec:
    channel = f"{addresses[wish.channel]}::" if wish.channel else ""
    version = wish.version or ("*" if wish.build else "")
    spec: MatchSpec = rattler.MatchSpec(
        " ".join(part for part in (channel + wish.name, version, wish.build) if part)
    )
    return spec


def _virtual(rattler: Any, name: str, version: str, subdir: str) -> Any:
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
    wish: CondaMatchSpec,
    spec: MatchSpec,
    there: list[RepoDataRecord],
    addresses: Mapping[str, str],
    platform: str,
) -> None:
    """Raise Unsatisfiable, in words of what the channel does have, where nothing of a wish is there
    at all.
    """
    root = addresses.get(wish.channel, "")
    of_name = [
        record
        for record in there
        if record.name.normalized == wish.name.lower() and str(record.url).startswith(root)
    ]
    if any(spec.matches(record) for record in of_name):
        return
    where = f"channel {wish.channel}" if wish.channel else "no channel"
    if not of_name:
        raise Unsatisfiable(
            f"{where} has no package {wish.name} for {platform}",
            hint="check its name, or name the channel that has it",
        )
    of_version = [record for record in of_name if _has_version(wish, record)]
    if of_version:
        builds = format_last_items([str(record.build) for record in of_version])
        raise Unsatisfiable(
            f"{where} has no build {wish.build} of {wish.name} {wish.version} for {platform}",
            why=f"its builds of that version: {builds}",
        )
    versions = format_last_items(
        [str(record.version) for record in sorted(of_name, key=lambda record: record.version)]
    )
    raise Unsatisfiable(
        f"{where} has no {wish.name} {wish.version} for {platform}",
        why=f"the versions there: {versions}",
    )


def _has_version(wish: CondaMatchSpec, record: RepoDataRecord) -> bool:
    """Tell whether a record has the version of a wish, whatever its build."""
    fits: bool = require_rattler().MatchSpec(f"{wish.name} {wish.version}".strip()).matches(record)
    return fits


def format_last_items(texts: list[str]) -> str:
    """Return the last of some texts, each once, and how many more there are."""
    unique = list(dict.fromkeys(texts))
    return ", ".join(
        [
            *([f"{len(unique) - _MAX_ITEMS} more"] if len(unique) > _MAX_ITEMS else []),
            *unique[-_MAX_ITEMS:],
        ]
    )


def _to_conda_record(found: RepoDataRecord, addresses: Mapping[str, str]) -> CondaRecord:
    channel = next(name for name, root in addresses.items() if str(found.url).startswith(root))
    if found.sha256 is None:
        raise LockError(
            f"channel {channel} tells no sha256 of {found.file_name}",
            hint="take the package from a channel that does",
        )
    noarch = "python" if found.noarch.python else "generic" if found.noarch.generic else ""
    return CondaRecord(
        found.name.normalized,
        str(found.version),
        str(found.build),
        found.build_number,
        noarch,
        channel,
        str(found.subdir),
        str(found.file_name),
        found.sha256.hex(),
        found.md5.hex() if found.md5 else "",
        tuple(str(need) for need in found.depends),
        tuple(str(bound) for bound in found.constrains),
    )


def to_repodata_record(rattler: Any, record: CondaRecord, root: str) -> RepoDataRecord:
    """Return a locked record as py-rattler has it, with its address below a channel's."""
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
    made: RepoDataRecord = rattler.RepoDataRecord(
        package, record.file, f"{root}{record.subdir}/{record.file}", root
    )
    return made


def _channel_unreachable(said: str, addresses: Mapping[str, str], *, offline: bool) -> NetworkError:
    name = next(
        (name for name, root in addresses.items() if root in said or root.rstrip("/") in said),
        next(iter(addresses)),
    )
    if offline:
        return NetworkError(
            f"what channel {name} has is not in the cache, and --offline was asked for",
            hint="run it once online",
        )
    hint = f"check the network, or name a mirror: {channel_override_variable(name)}=https://..."
    return NetworkError(
        f"conda channel {name} cannot be reached", why=redact(escape_control(said)), hint=hint
    )
