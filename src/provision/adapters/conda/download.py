"""Downloads files of channels that require credentials, for the user's own conda.

conda writes down the address of each file that it downloads itself, credentials included.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from provision.adapters.conda.channels import (
    channel_override_variable,
    channel_url_with_credentials,
    channel_urls,
    http_client,
)
from provision.adapters.uv.local_index import hash_file
from provision.effects.conda import CondaRecord, CreateCondaPrefix
from provision.errors import LockError, NetworkError
from provision.sanitize import escape_control, redact

_CONCURRENT_DOWNLOADS = 8


def record_urls(
    effect: CreateCondaPrefix, environment: Mapping[str, str], folder: Path, *, offline: bool
) -> list[str]:
    """Return an address without credentials for each record. May block for minutes.

    It is below the channel's address, or a copy in `folder` if the channel requires credentials.

    Raises:
        NetworkError: a file cannot be downloaded.
        LockError: a file is not the locked one.
    """
    protected_channels = {
        channel.name
        for channel in effect.channels
        if "@" in urlsplit(channel_url_with_credentials(channel, environment)).netloc
    }
    protected = [record for record in effect.records if record.channel in protected_channels]
    if protected and offline:
        why = (
            f"{protected[0].channel} requires credentials, which provision does "
            f"not pass to {effect.program.name}"
        )
        raise NetworkError(
            f"{len(protected)} conda files must be downloaded first, but --offline is set",
            why=why,
            hint=(
                "run the command without --offline, or set "
                "PROVISION_CONDA=py-rattler, which has its own cache"
            ),
        )
    urls = channel_urls(effect.channels, environment)
    if protected:
        client = http_client(effect.channels, environment)
        asyncio.run(_download_all(protected, urls, client, folder))
    return [
        (folder / record.subdir / record.file).as_uri()
        if record.channel in protected_channels
        else f"{urls[record.channel]}{record.subdir}/{record.file}"
        for record in effect.records
    ]


def require_locked_content(record: CondaRecord, path: Path) -> None:
    """Raise LockError if a file does not have the locked sha256."""
    if (sha256 := hash_file(path)) != record.sha256:
        raise altered_file_error(
            f"{record.file} on channel {record.channel} has sha256 {sha256}, but the lock has "
            f"{record.sha256}"
        )


def altered_file_error(why: str) -> LockError:
    """Return the error for a file that is not the locked one."""
    return LockError(
        "a file on a conda channel differs from the locked file",
        why=why,
        hint="if the change is intended, lock again with `provision lock --upgrade`",
    )


async def _download_all(
    records: list[CondaRecord], urls: Mapping[str, str], client: Any, folder: Path
) -> None:
    slots = asyncio.Semaphore(_CONCURRENT_DOWNLOADS)

    async def download(record: CondaRecord) -> None:
        async with slots:
            await _download(record, urls[record.channel], client, folder)

    await asyncio.gather(*(download(record) for record in records))


async def _download(record: CondaRecord, channel_url: str, client: Any, folder: Path) -> None:
    from rattler.package_streaming import download_to_path

    path = folder / record.subdir / record.file
    path.parent.mkdir(exist_ok=True)
    try:
        await download_to_path(client, f"{channel_url}{record.subdir}/{record.file}", path)
    except RuntimeError as error:  # py-rattler 0.28 has no class for this error
        variable = channel_override_variable(record.channel)
        raise NetworkError(
            "a conda package could not be downloaded",
            why=redact(escape_control(str(error))),
            hint=f"check the network and the credentials in {variable}",
        ) from None
    require_locked_content(record, path)
