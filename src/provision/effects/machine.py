"""Resources of this machine, as a reader measures them."""

from __future__ import annotations

from typing import NamedTuple


class MachineResources(NamedTuple):
    """Free disk and memory of this machine in bytes, and its GPUs by the names in the driver.

    `gpus` is None without nvidia-smi, or if they were not requested; `driver` is the version of
    the NVIDIA driver, "" if it is not known; `shm` the size of /dev/shm, None without one.
    """

    free_disk: int
    memory: int
    gpus: tuple[str, ...] | None = None
    driver: str = ""
    shm: int | None = None
