"""Creates conda prefixes of locked files, with py-rattler or the user's own conda."""

from __future__ import annotations

import asyncio
import json
import os
import re
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from provision.adapters.conda import channels, programs
from provision.adapters.conda.download import (
    altered_file_error,
    record_urls,
    require_locked_content,
)
from provision.adapters.conda.solver import format_last_items, to_repodata_record
from provision.agent.core.record_audit import make_install_note, read_record
from provision.effects.conda import CondaRecord, CreateCondaPrefix
from provision.effects.system import DownloadProgress, ProgressCallback
from provision.errors import ExternalError, NetworkError, ProvisionError
from provision.sanitize import escape_control, redact

_REPORT_INTERVAL_S = 0.5


def create_prefix(
    effect: CreateCondaPrefix,
    environment: Mapping[str, str],
    now: str,
    progress: ProgressCallback,
    *,
    offline: bool = False,
) -> None:
    """Create a prefix of the locked files, which conda accepts as its own.

    Raises:
        LockError: a file is not the locked one.
        NetworkError: a file cannot be downloaded.
        ExternalError: the program failed, or the disk is full.
    """
    if effect.program.path is not None:
        with tempfile.TemporaryDirectory(prefix="provision-") as folder:
            file_urls = record_urls(effect, environment, Path(folder), offline=offline)
            programs.create_prefix_with_program(effect, file_urls, environment, offline=offline)
        for record, url in zip(effect.records, file_urls, strict=True):
            _write_public_url(effect, record, url.removesuffix(f"{record.subdir}/{record.file}"))
        return
    urls = channels.channel_urls(effect.channels, environment)
    _install_with_rattler(effect, environment, urls, progress, offline=offline)
    for record in effect.records:
        _write_public_url(effect, record, urls[record.channel])
    _write_history(effect, now)


def _install_with_rattler(
    effect: CreateCondaPrefix,
    environment: Mapping[str, str],
    urls: Mapping[str, str],
    progress: ProgressCallback,
    *,
    offline: bool,
) -> None:
    rattler = channels.require_rattler()
    from rattler.exceptions import InstallerError

    records = [to_repodata_record(record, urls[record.channel]) for record in effect.records]
    for record in effect.records:
        _refuse_altered(record, urls[record.channel])
    cache = channels.cache_folder(environment) / "pkgs"
    if offline:
        _refuse_not_cached(effect.records, cache)
    # py-rattler 0.28 accepts only its inner type here.
    specs = [rattler.MatchSpec(spec)._match_spec for spec in effect.match_specs]
    try:
        asyncio.run(
            rattler.install(
                records,
                effect.path,
                cache_dir=cache,
                client=channels.http_client(effect.channels, environment),
                reporter=_DownloadReporter(progress),
                requested_specs=specs or None,
            )
        )
    except InstallerError as error:
        raise _install_error(redact(escape_control(str(error))), urls) from None


class _DownloadReporter:
    """Receives py-rattler's calls (InstallerReporter), and reports the downloads twice a second."""

    def __init__(self, progress: ProgressCallback) -> None:
        self._progress = progress
        self._packages = self._cached = 0
        self._downloaded: list[int] = []
        self._last_report = 0.0

    def on_transaction_start(self, total_operations: int) -> None:
        """Note the number of packages."""
        self._packages = total_operations

    def on_download_start(self, _cache_entry: int) -> int:
        """Return a number for a download."""
        self._downloaded.append(0)
        return len(self._downloaded) - 1

    def on_download_progress(self, download: int, downloaded: int, _total: int | None) -> None:
        """Note the bytes of a download so far."""
        self._downloaded[download] = downloaded
        self._report()

    def on_populate_cache_complete(self, _cache_entry: int) -> None:
        """Note that a package is in the cache."""
        self._cached += 1
        self._report()

    def _report(self) -> None:
        if self._downloaded and time.monotonic() - self._last_report >= _REPORT_INTERVAL_S:
            self._last_report = time.monotonic()
            size = sum(self._downloaded)
            self._progress(
                DownloadProgress("downloading", self._cached, self._packages, size, None)
            )


def with_conda_packages(result: Mapping[str, Any], prefix: Path, minor: str) -> dict[str, Any]:
    """Return an installation's record with the Python packages that conda installed.

    conda writes paths into files and generates scripts, so that such files never match a package's
    own RECORD: they are noted as `remade`, and are not taken for files that were changed later.
    """
    from provision.agent.core.installed_packages import audit_packages, find_installed_packages

    installed = find_installed_packages([str(prefix / f"lib/python{minor}/site-packages")])
    others = {
        name: package for name, package in installed.items() if name not in result["packages"]
    }
    audits = audit_packages(others, hashed=False, among=installed.values())
    linked = _linked_packages(prefix, minor)
    noted = {}
    for name, package in others.items():
        audit = audits[name]
        note: dict[str, Any] = {
            "version": package.version,
            "provenance": "preinstalled",
            "files_checked": audit.files,
            **make_install_note(read_record(package.metadata_folder)).to_json(),
        }
        origin = linked.get(os.path.relpath(package.metadata_folder, prefix))
        if origin is not None:
            note["conda"] = origin.stem
            altered = {os.path.relpath(path, prefix) for path in audit.altered_files}
            if remade := altered.union(origin.remade):
                note["remade"] = sorted(remade)
        elif audit.flaws:
            note["record_fits"] = False
        noted[name] = note
    preinstalled = result["counts"].get("preinstalled", 0) + len(noted)
    return {
        **result,
        "counts": {**result["counts"], "preinstalled": preinstalled},
        "packages": dict(sorted({**result["packages"], **noted}.items())),
    }


class _LinkedPackage(NamedTuple):
    """A package of conda: the stem of its file, and the paths that differ from that file."""

    stem: str
    remade: tuple[str, ...]


def _linked_packages(prefix: Path, minor: str) -> dict[str, _LinkedPackage]:
    """Return the conda package of each Python metadata folder (a path in the prefix)."""
    packages: dict[str, _LinkedPackage] = {}
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
        packages |= {folder: _LinkedPackage(path.stem, remade) for folder in folders}
    return packages


def _path_in_prefix(path: str, minor: str) -> str:
    """Return the path of a file; files for any Python are recorded by a short path."""
    if path.startswith("site-packages/"):
        return f"lib/python{minor}/{path}"
    if path.startswith("python-scripts/"):
        return f"bin/{path.removeprefix('python-scripts/')}"
    return path


def _is_rewritten(row: Mapping[str, Any]) -> bool:
    """Return whether conda generated a file or wrote a path into it."""
    sha256 = row.get("sha256_in_prefix")
    return (
        bool(row.get("prefix_placeholder"))
        or (sha256 is not None and sha256 != row.get("sha256"))
        or "entry_point" in str(row.get("path_type"))
    )


def _refuse_altered(record: CondaRecord, channel_url: str) -> None:
    """Raise LockError for a local file that is not the locked one.

    py-rattler compares the sha256 of downloads only.
    """
    path = Path(unquote(urlsplit(f"{channel_url}{record.subdir}/{record.file}").path))
    if channel_url.startswith("file:") and path.is_file():
        require_locked_content(record, path)


def _refuse_not_cached(records: tuple[CondaRecord, ...], cache: Path) -> None:
    cached = [entry.name for entry in cache.iterdir()] if cache.is_dir() else []
    missing = []
    for record in records:
        stem = re.sub(r"\.(conda|tar\.bz2)$", "", record.file)
        if not any(name.startswith(stem) for name in cached):
            missing.append(record.file)
    if missing:
        raise NetworkError(
            f"not all conda files are in the cache (missing: {len(missing)}), and --offline is set",
            why=format_last_items(missing),
            hint="run the command once without --offline",
        )


def _install_error(output: str, urls: Mapping[str, str]) -> ProvisionError:
    if "hash mismatch" in output.lower():
        return altered_file_error(output)
    if "failed to fetch" in output.lower():
        _, hint = channels.find_unreachable_channel(output, urls)
        return NetworkError("a conda package could not be downloaded", why=output, hint=hint)
    if "(os error 28)" in output:
        return ExternalError(
            "the disk is full",
            why=output,
            hint="free up space for the environment and py-rattler's cache, then run the command "
            "again",
        )
    return ExternalError(
        "the conda environment could not be created",
        why=output,
        hint="run the command again: it replaces an incomplete environment",
    )


def _write_public_url(effect: CreateCondaPrefix, record: CondaRecord, channel_url: str) -> None:
    """Replace a mirror's address by the channel's own in what conda reads later.

    A mirror is this machine's, and its address may contain credentials.
    """
    channel = next(channel for channel in effect.channels if channel.name == record.channel)
    public_url = channels.public_channel_url(channel)
    if channel_url == public_url:
        return
    path = effect.path / f"conda-meta/{record.stem}.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["url"] = f"{public_url}{record.subdir}/{record.file}"
    document["channel"] = public_url
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")


def _write_history(effect: CreateCondaPrefix, now: str) -> None:
    """Write the file by which conda recognizes a prefix: the request and the packages."""
    lines = [
        f"==> {now.replace('T', ' ').removesuffix('Z')} <==",
        "# cmd: provision apply",
        f"# update specs: {list(effect.match_specs)!r}",
        *(f"+{record.channel}/{record.subdir}::{record.stem}" for record in effect.records),
    ]
    (effect.path / "conda-meta").mkdir(parents=True, exist_ok=True)
    (effect.path / "conda-meta/history").write_text("\n".join(lines) + "\n", encoding="utf-8")
