"""A conda prefix of what was locked: made by py-rattler or by the user's own program, every file checked, known to conda afterwards."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from provision.effects import CondaRecord, CreateCondaPrefix
from provision.errors import LockError, NetworkError, ProvisionError, WorldError
from provision.safe import redact, safe
from provision.world import conda, conda_programs


def create_prefix(effect: CreateCondaPrefix, environment: Mapping[str, str], now: str, *, offline: bool = False) -> None:
    """Make a prefix, and the history by which conda takes it for one of its own; raises LockError for a file that is not the locked one, WorldError."""
    rattler = conda.need()
    from rattler.exceptions import InstallerError

    addresses = {channel.name: conda.address(channel, environment) for channel in effect.channels}
    if effect.program.path is not None:
        located = {channel.name: conda.located(channel, environment) for channel in effect.channels}
        conda_programs.create(effect, located, environment, offline=offline)
        for record in effect.records:
            _name_publicly(effect, record, located[record.channel])
        return
    records = [conda.repodata_record(rattler, record, addresses[record.channel]) for record in effect.records]
    for record in effect.records:
        _refuse_altered(record, addresses[record.channel])
    if offline:
        _refuse_not_cached(effect.records, conda.cache(environment) / "pkgs")
    wishes = [rattler.MatchSpec(wish)._match_spec for wish in effect.wishes]  # 0.28 takes no other
    try:
        client, kept = conda.client(rattler, effect.channels, environment), conda.cache(environment) / "pkgs"
        asyncio.run(rattler.install(records, effect.path, cache_dir=kept, client=client, show_progress=False, requested_specs=wishes or None))
    except InstallerError as error:
        raise _not_installed(redact(safe(str(error))), addresses) from None
    for record in effect.records:
        _name_publicly(effect, record, addresses[record.channel])
    _write_history(effect, now)


def with_brought(result: Mapping[str, Any], prefix: Path, minor: str) -> dict[str, Any]:
    """Return what an installation noted with the Python packages that conda brought.

    conda writes paths into files and makes scripts anew, so that a package may not fit its own RECORD from the first: that is noted, and such a package is
    not taken for one that was changed later.
    """
    from provision.installing import Audit
    from provision.installing.inventory import audit, installed

    there = installed([str(prefix / f"lib/python{minor}/site-packages")])
    others = {name: found for name, found in there.items() if name not in result["packages"]}
    audited = audit(others, Audit.SIZE, there.values())
    brought = {
        name: {
            "version": found.version,
            "provenance": "preinstalled",
            "files_checked": audited[name].files,
            **({"record_fits": False} if audited[name].flaws else {}),
        }
        for name, found in others.items()
    }
    counts = {**result["counts"], "preinstalled": result["counts"].get("preinstalled", 0) + len(brought)}
    return {**result, "counts": counts, "packages": dict(sorted({**result["packages"], **brought}.items()))}


def _refuse_altered(record: CondaRecord, root: str) -> None:
    """Raise LockError for a file on this machine that is not the locked one: py-rattler compares the sha256 of what it downloads only."""
    path = Path(unquote(urlsplit(f"{root}{record.subdir}/{record.file}").path))
    if not root.startswith("file:") or not path.is_file():
        return
    with path.open("rb") as file:
        there = hashlib.file_digest(file, "sha256").hexdigest()
    if there != record.sha256:
        raise _altered(f"{record.file} on channel {record.channel} has sha256 {there}, locked is {record.sha256}")


def _altered(said: str) -> LockError:
    hint = "if the change is meant, lock again with `provision lock --upgrade`"
    return LockError("a file on a conda channel is not the one that was locked", why=said, hint=hint)


def _refuse_not_cached(records: tuple[CondaRecord, ...], cache: Path) -> None:
    held = {entry.name for entry in cache.iterdir()} if cache.is_dir() else set()
    missing = [record.file for record in records if not any(name.startswith(re.sub(r"\.(conda|tar\.bz2)$", "", record.file)) for name in held)]
    if missing:
        raise NetworkError(
            f"{len(missing)} conda files are not in the cache, and --offline was asked for", why=conda.listed(missing), hint="run it once online"
        )


def _not_installed(said: str, addresses: Mapping[str, str]) -> ProvisionError:
    if "hash mismatch" in said.lower():
        return _altered(said)
    if "failed to fetch" in said.lower():
        name = next((name for name, root in addresses.items() if root in said), next(iter(addresses)))
        return NetworkError(
            "a conda package cannot be fetched", why=said, hint=f"check the network, or name a mirror: {conda.override_variable(name)}=https://..."
        )
    if "(os error 28)" in said:
        return WorldError("the disk is full", why=said, hint="free some space (the environment and py-rattler's cache need it) and run the command again")
    return WorldError("the conda environment cannot be made", why=said, hint="run the command again: what is half-made is made anew")


def _name_publicly(effect: CreateCondaPrefix, record: CondaRecord, root: str) -> None:
    """Put the channel's own address in the place of a mirror's in what conda reads later: a mirror is this machine's, and may hold credentials."""
    public = conda.public_address(next(channel for channel in effect.channels if channel.name == record.channel))
    if root == public:
        return
    path = effect.path / f"conda-meta/{record.name}-{record.version}-{record.build}.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**document, "url": f"{public}{record.subdir}/{record.file}", "channel": public}, indent=2), encoding="utf-8")


def _write_history(effect: CreateCondaPrefix, now: str) -> None:
    """Write the file by which conda knows a prefix: what was asked for, and what came."""
    lines = [
        f"==> {now.replace('T', ' ').removesuffix('Z')} <==",
        "# cmd: provision apply",
        f"# update specs: {list(effect.wishes)!r}",
        *(f"+{record.channel}/{record.subdir}::{record.name}-{record.version}-{record.build}" for record in effect.records),
    ]
    (effect.path / "conda-meta").mkdir(parents=True, exist_ok=True)
    (effect.path / "conda-meta/history").write_text("\n".join(lines) + "\n", encoding="utf-8")
