"""Files of channels that ask for credentials, fetched for the user's own conda: it writes down the
address of each file that it fetches itself.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from provision.adapters.conda import solver
from provision.effects import CondaRecord, CreateCondaPrefix
from provision.errors import LockError, NetworkError
from provision.sanitize import escape_control, redact

_CONCURRENT_DOWNLOADS = 8


def record_urls(
    effect: CreateCondaPrefix, environment: Mapping[str, str], folder: Path, *, offline: bool
) -> list[str]:
    """Return an address without credentials for each record: its channel's, or that of a copy in
    `folder` where the channel asks for credentials.

    Raises NetworkError when a file cannot be fetched, LockError when it is not the locked one.
    """
    located = {
        channel.name: solver.channel_url_with_credentials(channel, environment)
        for channel in effect.channels
    }
    guarded = [
        record for record in effect.records if "@" in urlsplit(located[record.channel]).netloc
    ]
    if guarded and offline:
        why = (
            f"{guarded[0].channel} asks for credentials, and {effect.program.name} is not told them"
        )
        hint = "run it online, or set PROVISION_CONDA=py-rattler, which has a cache of its own"
        raise NetworkError(
            f"{len(guarded)} conda files cannot be handed over, and --offline was asked for",
            why=why,
            hint=hint,
        )
    bare = {channel.name: solver.channel_url(channel, environment) for channel in effect.channels}
    if guarded:
        asyncio.run(
            _fetch_all(
                guarded,
                bare,
                solver.http_client(solver.require_rattler(), effect.channels, environment),
                folder,
            )
        )
    return [
        (folder / record.subdir / record.file).as_uri()
        if record in guarded
        else f"{bare[record.channel]}{record.subdir}/{record.file}"
        for record in effect.records
    ]


def altered_file_error(said: str) -> LockError:
    """Return the error for a file that is not the one that was locked."""
    hint = "if the change is meant, lock again with `provision lock --upgrade`"
    return LockError(
        "a file on a conda channel is not the one that was locked", why=said, hint=hint
    )


def hash_file(path: Path) -> str:
    """Return the sha256 of a file (hexadecimal)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def _fetch_all(
    records: list[CondaRecord], roots: Mapping[str, str], client: Any, folder: Path
) -> None:
    turns = asyncio.Semaphore(_CONCURRENT_DOWNLOADS)

    async def fetch(record: CondaRecord) -> None:
        async with turns:
            await _fetch(record, roots[record.channel], client, folder)

    await asyncio.gather(*(fetch(record) for record in records))


async def _fetch(record: CondaRecord, root: str, client: Any, folder: Path) -> None:
    from rattler.package_streaming import download_to_path

    path = folder / record.subdir / record.file
    path.parent.mkdir(exist_ok=True)
    try:
        await download_to_path(client, f"{root}{record.subdir}/{record.file}", path)
    except RuntimeError as error:  # py-rattler 0.28 has no error of its own for this
        hint = (
            "check the network and the credentials in "
            f"{solver.channel_override_variable(record.channel)}"
        )
        raise NetworkError(
            "a conda package cannot be fetched", why=redact(escape_control(str(error))), hint=hint
        ) from None
    if (there := hash_file(path)) != record.sha256:
        raise altered_file_error(
            f"{record.file} on channel {record.channel} has sha256 {there}, locked is "
            f"{record.sha256}"
        )
