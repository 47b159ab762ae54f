"""Wheels of a job's lock in the bucket, which all targets with the same `bucket` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from provision.agent.probe.byte_sizes import format_bytes
from provision.effects.system import Reader
from provision.lock import LockedFile
from provision.lock.wheels import glibc_of_wheel, rank_wheels
from provision.targets.context import TargetContext
from provision.targets.pinned_uv import read_pinned_uv


@dataclass(frozen=True, slots=True)
class WheelStock:
    """The folder of wheels in a bucket, the number of locked wheels, and those not in it.

    `missing` has one file for each package.
    """

    folder: str
    count: int
    missing: tuple[LockedFile, ...]


def locate_wheels(bucket: str) -> str:
    """Return the folder of the wheels in a target's bucket, with a slash at its end.

    Its name is unlikely to be one of the user's: people delete it as a whole.
    """
    return f"{bucket}/provision-wheels/"


def build_wheel_request(context: TargetContext, bucket: str) -> dict[str, Any]:
    """Return the part of a job's document about the wheels in the bucket."""
    uv = [LockedFile(name, sha256) for name, sha256 in read_pinned_uv()["files"].items()]
    return {
        "folder": locate_wheels(bucket),
        "packages": {
            name: [_to_document(file) for file in files]
            for name, files in _find_wheels(context).items()
        },
        "uv": [_to_document(file) for file in uv],
    }


def find_missing_wheels(context: TargetContext, bucket: str, reader: Reader) -> WheelStock | None:
    """Return which wheels of the lock are not in the bucket.

    None if the lock has none, no bucket is declared, or it cannot be listed.
    """
    folder, wheels = locate_wheels(bucket), _find_wheels(context)
    stored = reader.cloud().object_uris(folder) if bucket and wheels else None
    if stored is None:
        return None
    present = frozenset(stored)
    missing = (
        files[0]
        for files in wheels.values()
        if not any(f"{folder}{file.sha256}/{file.name}" in present for file in files)
    )
    return WheelStock(folder, len(wheels), tuple(missing))


def describe_wheels(stock: WheelStock) -> str:
    """Return which wheels are in the bucket."""
    text = f"wheels: {len(stock.missing)} of {stock.count} missing in {stock.folder}"
    if not stock.missing:
        return text
    sizes = [file.size for file in stock.missing if file.size is not None]
    size = f" ({format_bytes(sum(sizes))})" if len(sizes) == len(stock.missing) else ""
    return f"{text}{size}; the primary machine adds them"


def _find_wheels(context: TargetContext) -> dict[str, tuple[LockedFile, ...]]:
    """Return the wheels of each package of an index, the best one first; none is built."""
    python, platform = context.lock.python, context.platform
    wheels = {
        package.name: rank_wheels(package, python, platform)
        for package in context.lock.packages_in(context.environment)
        if package.origin is None and not package.built
    }
    return {name: files for name, files in sorted(wheels.items()) if files}


def _to_document(file: LockedFile) -> dict[str, str | None]:
    glibc = glibc_of_wheel(file.name)
    oldest = None if glibc is None else f"{glibc[0]}.{glibc[1]}"
    return {"name": file.name, "sha256": file.sha256, "glibc": oldest}
