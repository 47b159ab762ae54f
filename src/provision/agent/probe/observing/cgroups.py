"""Memory and CPU limits of control groups, version 1 and 2, from this process to the root."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ..text_files import find_number, read_text

_V1_UNLIMITED = 1 << 60
"""Version 1 writes "no limit" as the largest page-aligned 64-bit number; anything this large is
none.
"""


def memory_limit(root: Path) -> int | None:
    """Return the smallest memory limit in bytes of this process; None without one."""
    return min(_memory_limits(root).values(), default=None)


def memory_folders(root: Path) -> list[Path]:
    """The folders of the control groups that count this process's memory, its own first."""
    return [folder for folder, _ in _folders(root, "memory")]


def memory_used(root: Path) -> int | None:
    """Return the bytes used in the group with the smallest limit; None without one.

    Inactive file pages, which the kernel takes back at once, are left out.
    """
    limits = _memory_limits(root)
    if not limits:
        return None
    folder = min(limits, key=lambda group: limits[group])
    statistics = read_text(folder / "memory.stat")
    for name, statistic in (
        ("memory.current", "inactive_file"),
        ("memory.usage_in_bytes", "total_inactive_file"),
    ):
        used = read_text(folder / name)
        if used.isdigit() and statistics:
            return max(0, int(used) - (find_number(statistics, statistic) or 0))
    return None


def _memory_limits(root: Path) -> dict[Path, int]:
    return {
        folder: int(text)
        for folder, text in _values(root, "memory", "memory.max", "memory.limit_in_bytes")
        if text.isdigit() and int(text) < _V1_UNLIMITED
    }


def process_limit(root: Path) -> int | None:
    """Return the smallest limit of processes and threads; None without one."""
    texts = [text for _, text in _values(root, "pids", "pids.max", "pids.max")]
    return min((int(text) for text in texts if text.isdigit()), default=None)


def cpu_quota(root: Path) -> float | None:
    """Return the CPUs of the smallest quota, such as 1.5; None without one."""
    quotas = [text.partition(" ")[::2] for _, text in _values(root, "cpu", "cpu.max", "")]
    quotas += [
        (quota, read_text(folder / "cpu.cfs_period_us"))
        for folder, quota in _values(root, "cpu", "", "cpu.cfs_quota_us")
    ]
    return min(
        (
            int(quota) / int(period)
            for quota, period in quotas
            if quota.isdigit() and period.isdigit()
        ),
        default=None,
    )


def _values(root: Path, controller: str, v2_name: str, v1_name: str) -> Iterator[tuple[Path, str]]:
    for folder, version in _folders(root, controller):
        name = v2_name if version == 2 else v1_name
        if name:
            yield folder, read_text(folder / name)


def _folders(root: Path, controller: str) -> Iterator[tuple[Path, int]]:
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    mount = root / "sys/fs/cgroup"
    for line in lines:
        number, controllers, group = line.split(":", 2)
        if number == "0" and not controllers:
            yield from ((folder, 2) for folder in _upwards(mount, group))
        elif controller in controllers.split(","):
            for name in (controllers, controller):
                if (mount / name).is_dir():
                    yield from ((folder, 1) for folder in _upwards(mount / name, group))
                    break


def _upwards(mount: Path, group: str) -> Iterator[Path]:
    # Inside a container the group may be named as the host sees it; the container's own limits then
    # stand at the mount itself.
    path = PurePosixPath(group.lstrip("/"))
    for part in (path, *path.parents):
        yield mount / part
