"""A conda prefix of what was locked: made by py-rattler or by the user's own program, every file
checked, known to conda afterwards.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from provision.adapters.conda import programs, solver
from provision.adapters.conda.download import altered_file_error, hash_file, record_urls
from provision.agent.core.record_audit import make_install_note, read_record
from provision.effects import CondaRecord, CreateCondaPrefix
from provision.errors import ExternalError, NetworkError, ProvisionError
from provision.sanitize import escape_control, redact


def create_prefix(
    effect: CreateCondaPrefix, environment: Mapping[str, str], now: str, *, offline: bool = False
) -> None:
    """Make a prefix, and the history by which conda takes it for one of its own; raises LockError
    for a file that is not the locked one, WorldError.
    """
    rattler = solver.require_rattler()
    from rattler.exceptions import InstallerError

    addresses = {
        channel.name: solver.channel_url(channel, environment) for channel in effect.channels
    }
    if effect.program.path is not None:
        with tempfile.TemporaryDirectory(prefix="provision-") as folder:
            urls = record_urls(effect, environment, Path(folder), offline=offline)
            programs.create_prefix_with_program(effect, urls, environment, offline=offline)
        for record, url in zip(effect.records, urls, strict=True):
            _write_public_url(effect, record, url.removesuffix(f"{record.subdir}/{record.file}"))
        return
    records = [
        solver.to_repodata_record(rattler, record, addresses[record.channel])
        for record in effect.records
    ]
    for record in effect.records:
        _refuse_altered(record, addresses[record.channel])
    if offline:
        _refuse_not_cached(effect.records, solver.cache_folder(environment) / "pkgs")
    wishes = [
        rattler.MatchSpec(wish)._match_spec for wish in effect.match_specs
    ]  # 0.28 takes no other
    try:
        client, kept = (
            solver.http_client(rattler, effect.channels, environment),
            solver.cache_folder(environment) / "pkgs",
        )
        asyncio.run(
            rattler.install(
                records,
                effect.path,
                cache_dir=kept,
                client=client,
                show_progress=False,
                requested_specs=wishes or None,
            )
        )
    except InstallerError as error:
        raise _install_error(redact(escape_control(str(error))), addresses) from None
    for record in effect.records:
        _write_public_url(effect, record, addresses[record.channel])
    _write_history(effect, now)


def with_conda_packages(result: Mapping[str, Any], prefix: Path, minor: str) -> dict[str, Any]:
    """Return what an installation noted with the Python packages that conda brought, and which of
    conda's files each came with.

    conda writes paths into files and makes scripts anew, so that such files do not fit a
    package's own RECORD from the first: they are noted as `remade`,
    and not taken for files that were changed later.
    """
    from provision.agent.core.installed_packages import audit_packages, find_installed_packages

    there = find_installed_packages([str(prefix / f"lib/python{minor}/site-packages")])
    others = {name: found for name, found in there.items() if name not in result["packages"]}
    audited, linked = (
        audit_packages(others, hashed=False, among=there.values()),
        _linked_packages(prefix, minor),
    )
    brought = {}
    for name, found in others.items():
        noted: dict[str, Any] = {
            "version": found.version,
            "provenance": "preinstalled",
            "files_checked": audited[name].files,
        }
        noted |= make_install_note(read_record(found.metadata_folder)).to_json()
        by = linked.get(os.path.relpath(found.metadata_folder, prefix))
        if by is not None:
            remade = {
                *by.remade,
                *(os.path.relpath(path, prefix) for path in audited[name].altered_files),
            }
            brought[name] = {
                **noted,
                "conda": by.stem,
                **({"remade": sorted(remade)} if remade else {}),
            }
        else:
            brought[name] = {**noted, **({"record_fits": False} if audited[name].flaws else {})}
    counts = {
        **result["counts"],
        "preinstalled": result["counts"].get("preinstalled", 0) + len(brought),
    }
    return {
        **result,
        "counts": counts,
        "packages": dict(sorted({**result["packages"], **brought}.items())),
    }


class _LinkedPackage(NamedTuple):
    """A package as conda has linked it: the stem of its file, and the paths in the prefix that
    differ from those in that file.
    """

    stem: str
    remade: tuple[str, ...]


def _linked_packages(prefix: Path, minor: str) -> dict[str, _LinkedPackage]:
    """Return which package of conda brought each metadata folder of Python (a path in the prefix),
    by what conda has recorded.
    """
    found: dict[str, _LinkedPackage] = {}
    for path in sorted((prefix / "conda-meta").glob("*.json")):
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            folders = {
                name.rpartition("/")[0]
                for name in document.get("files", ())
                if name.endswith((".dist-info/METADATA", ".egg-info/PKG-INFO"))
            }
            rows = (document.get("paths_data") or {}).get("paths", ()) if folders else ()
            remade = tuple(
                _path_in_prefix(row["_path"], minor) for row in rows if _is_rewritten(row)
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
        found |= {folder: _LinkedPackage(path.stem, remade) for folder in folders}
    return found


def _path_in_prefix(path: str, minor: str) -> str:
    """Return where a file lies: conda records some of a package for any Python by the short path
    that they have in its archive.
    """
    short = {"site-packages/": f"lib/python{minor}/site-packages/", "python-scripts/": "bin/"}
    return next(
        (
            folder + path.removeprefix(start)
            for start, folder in short.items()
            if path.startswith(start)
        ),
        path,
    )


def _is_rewritten(row: Mapping[str, Any]) -> bool:
    """Tell a file that conda wrote itself or wrote a path into."""
    in_prefix = row.get("sha256_in_prefix")
    return (
        bool(row.get("prefix_placeholder"))
        or (in_prefix is not None and in_prefix != row.get("sha256"))
        or "entry_point" in str(row.get("path_type"))
    )


def _refuse_altered(record: CondaRecord, root: str) -> None:
    """Raise LockError for a file on this machine that is not the locked one: py-rattler compares
    the sha256 of what it downloads only.
    """
    path = Path(unquote(urlsplit(f"{root}{record.subdir}/{record.file}").path))
    if not root.startswith("file:") or not path.is_file():
        return
    if (there := hash_file(path)) != record.sha256:
        raise altered_file_error(
            f"{record.file} on channel {record.channel} has sha256 {there}, locked is "
            f"{record.sha256}"
        )


def _refuse_not_cached(records: tuple[CondaRecord, ...], cache: Path) -> None:
    held = {entry.name for entry in cache.iterdir()} if cache.is_dir() else set()
    missing = [
        record.file
        for record in records
        if not any(
            name.startswith(re.sub(r"\.(conda|tar\.bz2)$", "", record.file)) for name in held
        )
    ]
    if missing:
        raise NetworkError(
            f"{len(missing)} conda files are not in the cache, and --offline was asked for",
            why=solver.format_last_items(missing),
            hint="run it once online",
        )


def _install_error(said: str, addresses: Mapping[str, str]) -> ProvisionError:
    if "hash mismatch" in said.lower():
        return altered_file_error(said)
    if "failed to fetch" in said.lower():
        name = next(
            (name for name, root in addresses.items() if root in said), next(iter(addresses))
        )
        return NetworkError(
            "a conda package cannot be fetched",
            why=said,
            hint="check the network, or name a mirror: "
            f"{solver.channel_override_variable(name)}=https://...",
        )
    if "(os error 28)" in said:
        return ExternalError(
            "the disk is full",
            why=said,
            hint="free some space (the environment and py-rattler's cache need it) and run the "
            "command again",
        )
    return ExternalError(
        "the conda environment cannot be made",
        why=said,
        hint="run the command again: what is half-made is made anew",
    )


def _write_public_url(effect: CreateCondaPrefix, record: CondaRecord, root: str) -> None:
    """Put the channel's own address in the place of a mirror's in what conda reads later: a mirror
    is this machine's, and may hold credentials.
    """
    public = solver.public_channel_url(
        next(channel for channel in effect.channels if channel.name == record.channel)
    )
    if root == public:
        return
    path = effect.path / f"conda-meta/{record.stem}.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(
        json.dumps(
            {**document, "url": f"{public}{record.subdir}/{record.file}", "channel": public},
            indent=2,
        ),
        encoding="utf-8",
    )


def _write_history(effect: CreateCondaPrefix, now: str) -> None:
    """Write the file by which conda knows a prefix: what was asked for, and what came."""
    lines = [
        f"==> {now.replace('T', ' ').removesuffix('Z')} <==",
        "# cmd: provision apply",
        f"# update specs: {list(effect.match_specs)!r}",
        *(f"+{record.channel}/{record.subdir}::{record.stem}" for record in effect.records),
    ]
    (effect.path / "conda-meta").mkdir(parents=True, exist_ok=True)
    (effect.path / "conda-meta/history").write_text("\n".join(lines) + "\n", encoding="utf-8")
