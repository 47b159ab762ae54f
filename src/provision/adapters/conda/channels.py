"""Conda channels through py-rattler: addresses, credentials and listed files."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from provision.adapters.files import user_cache_folder
from provision.effects.conda import CondaChannel, CondaRecord
from provision.errors import ExternalError, NetworkError
from provision.sanitize import escape_control, redact

if TYPE_CHECKING:
    from rattler import Gateway


def require_rattler() -> Any:
    """Import py-rattler.

    Raises:
        ExternalError: the extra `conda` is not installed.
    """
    try:
        return import_module("rattler")
    except ImportError as error:
        from provision.extras import install_command

        why = (
            "provision uses py-rattler to solve and install conda packages, but the module "
            "rattler is not installed"
        )
        raise ExternalError(
            "conda support is not installed",
            why=why,
            hint=install_command("conda"),
        ) from error


def channel_override_variable(channel: str) -> str:
    """Return the name of the variable that names a mirror of a channel."""
    return "PROVISION_CHANNEL_" + re.sub(r"[^A-Z0-9]", "_", channel.upper())


def channel_url(channel: CondaChannel, environment: Mapping[str, str]) -> str:
    """Return the address of a channel on this machine, without credentials, ending in a slash.

    py-rattler writes it into its cache.
    """
    parts = urlsplit(channel_url_with_credentials(channel, environment))
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def channel_url_with_credentials(channel: CondaChannel, environment: Mapping[str, str]) -> str:
    """Return the address of a channel with its credentials: for requests, never to be stored."""
    address = environment.get(channel_override_variable(channel.name))
    base_url = require_rattler().Channel(address or channel.url or channel.name).base_url
    return str(base_url).rstrip("/") + "/"


def channel_urls(
    channels: tuple[CondaChannel, ...], environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the address of each channel on this machine by name (see `channel_url`)."""
    return {channel.name: channel_url(channel, environment) for channel in channels}


def public_channel_url(channel: CondaChannel) -> str:
    """Return the address of a channel on any machine, ending in a slash."""
    return channel_url(channel, {})


def override_notes(
    channels: tuple[CondaChannel, ...], environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Return a note for each channel that a variable replaces on this machine."""
    notes = []
    for channel in channels:
        variable = channel_override_variable(channel.name)
        if address := environment.get(variable):
            notes.append(f"conda channel {channel.name}: {redact(address)} ({variable})")
    return tuple(notes)


def list_hashes(
    records: Sequence[CondaRecord],
    channels: tuple[CondaChannel, ...],
    environment: Mapping[str, str],
) -> dict[tuple[str, str, str], str]:
    """Return the sha256 ("" for none) that channels list now for records. May block.

    The keys are (channel, subdir, file).

    Raises:
        NetworkError: a channel cannot be reached.
        ExternalError: the extra `conda` is not installed.
    """
    require_rattler()
    from rattler.exceptions import GatewayError

    urls = channel_urls(channels, environment)
    gateway = open_gateway(channels, environment, cache_action="no-cache")
    hashes: dict[tuple[str, str, str], str] = {}
    try:
        for channel, url in urls.items():
            own_records = [record for record in records if record.channel == channel]
            subdirs: Any = sorted({record.subdir for record in own_records})
            names = sorted({record.name for record in own_records})
            for listed in asyncio.run(gateway.query([url], subdirs, names, recursive=False)):
                for row in listed:
                    key = (channel, str(row.subdir), str(row.file_name))
                    hashes[key] = row.sha256.hex() if row.sha256 else ""
    except GatewayError as error:
        raise unreachable_error(str(error), urls, offline=False) from None
    return hashes


def http_client(channels: tuple[CondaChannel, ...], environment: Mapping[str, str]) -> Any:
    """Return a client that sends a channel's credentials to its own host and path only."""
    rattler = require_rattler()
    from rattler.networking import AddHeadersMiddleware, AuthenticationMiddleware, RetryMiddleware

    logins = []
    for channel in channels:
        parts = urlsplit(channel_url_with_credentials(channel, environment))
        login, has_login, _ = parts.netloc.rpartition("@")
        if has_login:
            token = base64.b64encode(unquote(login).encode()).decode()
            logins.append((parts.hostname, parts.path, {"Authorization": f"Basic {token}"}))
    if not logins:
        return rattler.Client.default_client(max_retries=1)

    def headers(host: str, path: str) -> dict[str, str] | None:
        for login_host, login_path, header in logins:
            if login_host == host and path.startswith(login_path):
                return header
        return None

    return rattler.Client(
        [RetryMiddleware(1), AuthenticationMiddleware(), AddHeadersMiddleware(headers)]
    )


def open_gateway(
    channels: tuple[CondaChannel, ...], environment: Mapping[str, str], *, cache_action: str
) -> Gateway:
    """Return py-rattler's reader of channels, with our own cache."""
    rattler = require_rattler()
    gateway: Gateway = rattler.Gateway(
        cache_dir=cache_folder(environment) / "repodata",
        default_config=rattler.SourceConfig(cache_action=cache_action),
        client=http_client(channels, environment),
    )
    return gateway


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return our own cache of channel files: the user's conda is never touched."""
    return user_cache_folder(environment) / "conda"


def unreachable_error(output: str, urls: Mapping[str, str], *, offline: bool) -> NetworkError:
    """Return the error for a channel that py-rattler cannot read, by its output."""
    channel, hint = find_unreachable_channel(output, urls)
    if offline:
        return NetworkError(
            f"the package list for channel {channel} is not in the cache, and --offline is set",
            hint="run the command once without --offline",
        )
    return NetworkError(
        f"conda channel {channel} cannot be reached", why=redact(escape_control(output)), hint=hint
    )


def find_unreachable_channel(output: str, urls: Mapping[str, str]) -> tuple[str, str]:
    """Return the channel whose address is in py-rattler's output, and the hint to use a mirror."""
    channels = (name for name, url in urls.items() if url.rstrip("/") in output)
    channel = next(channels, next(iter(urls)))
    variable = channel_override_variable(channel)
    return channel, f"check the network, or use a mirror: {variable}=https://..."
