"""Checks of the host, its paths, its variables and its secrets."""

from __future__ import annotations

from ..values import Check, Threshold, Tier

GIB = 1024**3
SHM_FLOOR = Threshold(GIB, "bytes", "own choice: containers start with 64 MiB (docker run --shm-size), one batch per worker has to fit")
NOFILE_FLOOR = Threshold(4096, "files", "own choice: a limit of 256 breaks DataLoader workers while 1000 batches are kept")
RAM_SHARE = Threshold(0.95, "of the declared bytes", "own choice: MemTotal leaves out what the kernel reserves (Linux, filesystems/proc)")


CHECKS: tuple[Check, ...] = (
    Check("H01", "host", "operating system", "host", ("host.platform", "os.id", "os.version"), Tier.INVENTORY),
    Check("H02", "host", "C library", "host", ("host.glibc", "os.version"), Tier.INVENTORY, required_by="glibc_min"),
    Check("H04", "host", "CPU share", "host", ("host.cpus", "host.cpu_affinity", "host.cpu_quota"), Tier.INVENTORY, required_by=""),
    Check("H05", "host", "memory", "host", ("host.ram_bytes", "host.cgroup_ram_bytes"), Tier.INVENTORY, required_by="requires.ram_bytes", threshold=RAM_SHARE),
    Check("H06", "host", "disk space", "host", ("disk.*",), Tier.INVENTORY, required_by="requires.disk_bytes"),
    Check("H07", "host", "shared memory", "host", ("host.shm_bytes",), Tier.INVENTORY, required_by="requires.shm_bytes", threshold=SHM_FLOOR),
    Check("H08", "host", "open files", "host", ("host.nofile",), Tier.INVENTORY, required_by="", threshold=NOFILE_FLOOR),
    Check("H10", "host", "locale and home", "host", ("locale.encoding", "user.home_writable"), Tier.INVENTORY, required_by=""),
    Check("W01", "paths", "declared paths", "host", ("path.*",), Tier.INVENTORY, required_by="paths"),
    Check("E01", "environment", "harmful variables", "host", ("env.*",), Tier.INVENTORY, required_by=""),
    Check("E02", "environment", "declared variables", "host", ("declared_env.*",), Tier.INVENTORY, required_by="env"),
    Check("Y01", "secrets", "declared secrets", "host", ("secret.*",), Tier.INVENTORY, required_by="secrets"),
)
