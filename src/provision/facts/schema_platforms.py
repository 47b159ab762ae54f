"""Row types of the fact tables about platforms: machines, images, Colab runtimes and prices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from provision.facts.evidence import Evidence


class MachineType(NamedTuple):
    """A machine type of Compute Engine: vCPUs, memory in GiB and built-in cards.

    `card` and `gpus` are "" and 0 for none; a fraction is a share of a card. `only` is "spot",
    "reservation" or "vgpu" if the type is not available otherwise.
    """

    name: str
    vcpus: int
    ram_gb: float
    evidence: Evidence
    card: str = ""
    gpus: float = 0
    only: str = ""

    @property
    def family(self) -> str:
        """The machine series: "n1", "g2", "a3"."""
        return self.name.split("-", 1)[0]


class GpuAttachment(NamedTuple):
    """The largest N1 machine to which that many cards can be attached."""

    card: str
    gpus: int
    vcpus_max: int
    ram_max_gb: float
    evidence: Evidence


class ImageFamily(NamedTuple):
    """An image family: operating system, Python, frameworks, CUDA, driver and end of support.

    An unpublished value is "". `kind` is workbench, container, container-host or dlvm.
    `secure_boot_with_gpu` is the first day on which Secure Boot works with a GPU, "" for never.
    """

    family: str
    project: str
    kind: str
    os: str
    evidence: Evidence
    python: str = ""
    torch: str = ""
    tensorflow: str = ""
    cuda: str = ""
    driver: str = ""
    released: str = ""
    end_of_support: str = ""
    end_of_availability: str = ""
    secure_boot_with_gpu: str = ""
    legacy: bool = False
    pinnable: bool = True
    note: str = ""


def split_image_name(image: str) -> tuple[str, str]:
    """Return the family and the day of an image name.

    The forms are FAMILY-YYYYMMDD-HHMM-rcN and FAMILY-vYYYYMMDD; any other name is a family with day
    "". Source: docs.cloud.google.com, Workbench instances, image versioning.
    """
    dated = re.fullmatch(r"(.+)-(?:(\d{8})-\d{4}-rc\d+|v(\d{8}))", image)
    return (dated[1], dated[2] or dated[3]) if dated else (image, "")


class ImageDriver(NamedTuple):
    """The driver of a family's images from a day ("20260809") or a milestone ("M121") on."""

    family: str
    since: str
    driver: str
    evidence: Evidence


class MetadataKey(NamedTuple):
    """A metadata key of Workbench that the author of a spec cannot set freely.

    `key` may end in "*" ("proxy-*"). `owner` is service (refused), create (accepted only at
    creation) or provision; `instead` is the spec field with the same effect, "" for none.
    """

    key: str
    owner: str
    evidence: Evidence
    instead: str = ""

    def matches(self, key: str) -> bool:
        """Return whether a key is this key or matches its prefix."""
        return key.startswith(self.key[:-1]) if self.key.endswith("*") else key == self.key


class ReservedLabel(NamedTuple):
    """A label that Workbench sets itself."""

    key: str
    evidence: Evidence


class DiskType(NamedTuple):
    """A disk type by its name in a spec and in the API; `boot`: an instance can start from it."""

    type: str
    api: str
    boot: bool
    evidence: Evidence


class WorkbenchLimit(NamedTuple):
    """A limit of Workbench instances, with its unit."""

    name: str
    value: float
    unit: str
    what: str
    evidence: Evidence


class OperatingSystem(NamedTuple):
    """An operating system: C library, default gcc major and Python."""

    os: str
    glibc: str
    gcc: str
    python: str
    evidence: Evidence


class ColabRuntime(NamedTuple):
    """A Colab runtime version: its GPU image on the day of its package list."""

    runtime: str
    released: str
    os: str
    glibc: str
    python: str
    torch: str
    flavour: str
    cudnn: str
    numpy: str
    transformers: str
    packages: int
    evidence: Evidence

    @property
    def minor(self) -> str:
        """Python as major.minor: "3.12"."""
        return ".".join(self.python.split(".")[:2])


class ColabShape(NamedTuple):
    """A Colab machine: card ("none" for CPU) and memory shape (standard or high).

    RAM is in GiB, disk in GB and GPU memory in MiB; unpublished values are None.
    """

    card: str
    shape: str
    colab: str
    ram_gib: float | None
    disk_gb: float | None
    vram_mib: int | None
    device: str
    free_tier: bool
    units_per_hour: float | None
    metadata: Mapping[str, str]
    evidence: Evidence


class ColabProperty(NamedTuple):
    """A property of every Colab machine since a day: its driver, compiler, lifetime of runtimes."""

    name: str
    value: str
    since: str
    what: str
    evidence: Evidence


class ProtectedPackage(NamedTuple):
    """A package that Colab's kernel depends on.

    It is pinned by google-colab, imported at start, or requires a restart when it is replaced; a
    version that `kills` matches stops the kernel from working.
    """

    package: str
    pinned: bool
    imported_at_start: bool
    restart: bool
    evidence: Evidence
    kills: str = ""

    @property
    def critical(self) -> bool:
        """True if the kernel runs on exactly this version: pinned, and imported when it starts."""
        return self.pinned and self.imported_at_start


class MachinePrice(NamedTuple):
    """US dollars an hour of a machine type (GPUs included) in a region, or of one GPU alone."""

    item: str
    card: str
    gpus: float
    region: str
    on_demand: float
    spot: float
    evidence: Evidence


class CardZones(NamedTuple):
    """The zones of a region that have a card; empty if only the region is known."""

    card: str
    region: str
    zones: tuple[str, ...]
    evidence: Evidence


class ImageChange(NamedTuple):
    """A feature of a family's images from a day ("20261004") on.

    Before that day they had no working driver for cards below capability `cc_below`.
    """

    family: str
    since: str
    what: str
    evidence: Evidence
    cc_below: str = ""
