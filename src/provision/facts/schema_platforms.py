"""The rows of the fact tables about places: machine types, images, Colab runtimes, zones and
prices.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from provision.facts.schema_torch import Evidence


class MachineType(NamedTuple):
    """A machine type of Compute Engine: vCPUs, memory in GiB, and the cards it carries itself (""
    and 0 for none; a fraction is a share of a card).

    `only` is "spot", "reservation" or "vgpu" where it cannot be had otherwise.
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
    """How large an N1 machine may be with that many cards of a kind attached."""

    card: str
    gpus: int
    vcpus_max: int
    ram_max_gb: float
    evidence: Evidence


class ImageFamily(NamedTuple):
    """An image family: its system, Python, frameworks, CUDA and driver ("" where nothing was
    published), and when its support ends.

    `kind` is workbench, container, container-host or dlvm. `secure_boot_with_gpu` is the day
    since when Secure Boot works with a GPU, "" for never.
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
    """Return the family and day of an image's name, FAMILY-YYYYMMDD-HHMM-rcN or FAMILY-vYYYYMMDD; a
    name of any other form is a family, with day "".

    Source: docs.cloud.google.com, Workbench instances, image versioning.
    """
    dated = re.fullmatch(r"(.+)-(?:(\d{8})-\d{4}-rc\d+|v(\d{8}))", image)
    return (dated[1], dated[2] or dated[3]) if dated else (image, "")


class ImageDriver(NamedTuple):
    """The driver that images of a family carry from a day ("20260809") or a milestone ("M121") on."""  # noqa: E501

    family: str
    since: str
    driver: str
    evidence: Evidence


class MetadataKey(NamedTuple):
    """A metadata key of Workbench ("proxy-*" for all that begin so) that is not the author's.

    `owner` is service (refused), create (taken when the instance is made only) or provision;
    `instead` the field that says the same, "" for none.
    """

    key: str
    owner: str
    evidence: Evidence
    instead: str = ""

    def matches(self, key: str) -> bool:
        """Tell whether `key` is this key, or one of these."""
        return key.startswith(self.key[:-1]) if self.key.endswith("*") else key == self.key


class ReservedLabel(NamedTuple):
    """A label that Workbench sets by itself."""

    key: str
    evidence: Evidence


class DiskType(NamedTuple):
    """A kind of disk by a spec's name and the service's; `boot` tells whether an instance can start
    from it.
    """

    type: str
    api: str
    boot: bool
    evidence: Evidence


class WorkbenchLimit(NamedTuple):
    """A number that holds for Workbench instances, with its unit."""

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
    """A Colab runtime version: its GPU image at the day of its list of packages."""

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
    """A Colab machine: card ("none" for CPU) and memory shape (standard or high), RAM in GiB, disk
    in GB, GPU memory in MiB; None where unpublished.
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
    """Something that holds on every Colab machine since a day, whatever the runtime: its driver,
    compiler, lifetime of runtimes.
    """

    name: str
    value: str
    since: str
    what: str
    evidence: Evidence


class ProtectedPackage(NamedTuple):
    """A package that Colab's kernel lives on: pinned by google-colab, imported at start, needing a
    restart when replaced; `kills` it at such versions.
    """

    package: str
    pinned: bool
    imported_at_start: bool
    restart: bool
    evidence: Evidence
    kills: str = ""

    @property
    def critical(self) -> bool:
        """Whether the kernel itself runs on exactly this version: pinned by google-colab, and
        imported when it starts.
        """
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
    """The zones of a region that have a card; empty where only the region is known."""

    card: str
    region: str
    zones: tuple[str, ...]
    evidence: Evidence


class ImageChange(NamedTuple):
    """What images of a family have from a day ("20261004") on; `cc_below`: before it they had no
    working driver for cards below that capability.
    """

    family: str
    since: str
    what: str
    evidence: Evidence
    cc_below: str = ""
