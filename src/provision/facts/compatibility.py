"""Compatibility of compiled code with GPUs and of CUDA versions with drivers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import NamedTuple

from provision.facts.evidence import Evidence
from provision.facts.fact_tables import FactTables
from provision.facts.schema_torch import (
    Card,
    CompiledFor,
    ComputeCapability,
    CudaToolkit,
    CudnnSupport,
    DriverBranch,
    TorchBuild,
    TorchRelease,
)
from provision.facts.versions import parse_version, require_version

CUDA_PACKAGES = re.compile(
    r"^(nvidia-.+-cu\d+"
    r"|nvidia-(cublas|cudnn|nccl|cuda|cufft|curand|cusolver|cusparse|nvjitlink|nvtx|cufile"
    r"|cusparselt|nvshmem).*"
    r"|cuda-(bindings|toolkit|pathfinder)|(pytorch-)?triton)$"
)
"""Names of the packages that belong to a CUDA build of torch."""


class CodeForm(StrEnum):
    """The form of GPU code: machine code, or PTX that the driver compiles at program start."""

    MACHINE = "sm"
    PTX = "ptx"


class DeviceCode(NamedTuple):
    """The code of a build that a GPU runs."""

    form: CodeForm
    cc: str


class IncompatibilityKind(StrEnum):
    """The reason why a build does not run on a card; UNKNOWN: a table lacks the row."""

    UNKNOWN = "unknown"
    NO_CODE = "no code for the GPU in the build"
    DRIVER_TOO_OLD = "driver too old for that CUDA"
    DRIVER_BEFORE_CARD = "driver older than the GPU"
    DRIVER_AFTER_CARD = "driver too new for the GPU"
    PTX_NEEDS_DRIVER = "driver too old to compile the build's PTX"


class Incompatibility(NamedTuple):
    """One reason, the driver or branch that would work ("" if none would), and its evidence."""

    kind: IncompatibilityKind
    required: str
    evidence: tuple[Evidence, ...]


class CompatibilityFacts(FactTables):
    """Lookups about torch builds, cards and drivers. An unknown value has the result None."""

    def torch_release(self, version: str) -> TorchRelease | None:
        """Return the release of a version such as "2.13" or "2.13.0+cu130"."""
        return self._torch_by_release.get(_torch_release_name(version))

    def build(self, torch: str, flavour: str, platform: str = "linux-x86_64") -> TorchBuild | None:
        """Return a CUDA build of torch; CPU builds are not in the table."""
        release = self.torch_release(torch)
        return release and self.builds.get(f"{release.release}:{flavour}:{platform}")

    def code_for(self, card: Card, build: CompiledFor) -> DeviceCode | None:
        """Return the code of a build that a card runs, or None if it has none.

        See `code_for_capability` for the rule and its source.
        """
        key = (card.cc, build.sm, build.ptx)
        if key not in self._codes:
            self._codes[key] = code_for_capability(card.cc, build, self.capabilities)
        return self._codes[key]

    def has_code_for(self, card: Card, build: TorchBuild) -> bool:
        """Return whether a build has code that a card runs."""
        return self.code_for(card, build) is not None

    def builds_for_card(
        self, card: Card, torch: str, platform: str = "linux-x86_64"
    ) -> tuple[TorchBuild, ...]:
        """Return the builds of a torch release that have code for a card, oldest CUDA first."""
        release = self.torch_release(torch)
        builds = []
        for flavour in release.builds if release else ():
            build = self.build(torch, flavour, platform)
            if build is not None and self.has_code_for(card, build):
                builds.append(build)
        return tuple(sorted(builds, key=lambda build: require_version(cuda_of(build.flavour))))

    def has_feature(self, card: Card, name: str) -> bool | None:
        """Return whether a card has tensor_cores, tf32, bf16, fp8 or fp4 in hardware."""
        capability = self.capabilities.get(card.cc)
        if capability is None:
            return None
        return name in capability.features and name not in card.lacks

    def driver_floor(self, cuda: str, *, windows: bool = False) -> str | None:
        """Return the oldest driver that runs programs of a CUDA version.

        Source: NVIDIA, CUDA Compatibility, minor version compatibility (11.x: 450, 12.x: 525,
        13.x: 580 on Linux).
        """
        toolkit = self.toolkits.get(cuda)
        return toolkit and toolkit.driver_floor(windows=windows)

    def last_driver_branch(self, card: Card) -> DriverBranch | None:
        """Return the last driver branch for a card's generation, or None if none drops it.

        It is 470 for Kepler and 580 for Maxwell, Pascal and Volta.
        """
        branches = (branch for branch in self.drivers if card.arch in branch.drops_after)
        return next(branches, None)

    def cudnn_floor(self, cuda: str, version: str) -> CudnnSupport | None:
        """Return the row for a cuDNN release ("9.11.0") and a CUDA major ("12")."""
        release = parse_version(version)
        rows = [
            row
            for row in self.cudnn
            if row.cuda == cuda and release is not None and require_version(row.first) <= release
        ]
        return max(rows, key=lambda row: require_version(row.first), default=None)

    def incompatibilities(
        self, driver: str, build: TorchBuild | None, card: Card
    ) -> tuple[Incompatibility, ...]:
        """Return all reasons why a build does not run on a card with a driver on Linux.

        The only reason is UNKNOWN if the build is None or the driver is not a version. Floors:
        NVIDIA, CUDA Compatibility (minor versions), which does not cover PTX: PTX requires a
        driver that is as new as the build's own CUDA.
        """
        toolkit = self.toolkits.get(cuda_of(build.flavour)) if build else None
        if build is None or toolkit is None or parse_version(_full_driver(driver)) is None:
            return (Incompatibility(IncompatibilityKind.UNKNOWN, "", ()),)
        reasons = []
        code = self.code_for(card, build)
        if code is None:
            evidence = (card.evidence, build.evidence)
            reasons.append(Incompatibility(IncompatibilityKind.NO_CODE, "", evidence))
        reasons += _toolkit_incompatibilities(driver, build, code, toolkit)
        branch = int(driver.split(".", maxsplit=1)[0])
        last = self.last_driver_branch(card)
        if last is not None and branch > int(last.branch):
            evidence = (card.evidence, last.evidence)
            reasons.append(
                Incompatibility(IncompatibilityKind.DRIVER_AFTER_CARD, last.branch, evidence)
            )
        capability = self.capabilities.get(card.cc)
        first = capability and capability.first_driver
        if capability is not None and first is not None and branch < int(first):
            evidence = (card.evidence, capability.evidence)
            reasons.append(Incompatibility(IncompatibilityKind.DRIVER_BEFORE_CARD, first, evidence))
        return tuple(reasons)

    def can_run(self, driver: str, build: TorchBuild | None, card: Card) -> bool | None:
        """Return whether a build runs on a card with a driver."""
        if build is None:
            return None
        # All that the reasons depend on.
        key = (driver, build.flavour, build.sm, build.ptx, card.cc, card.arch)
        if key not in self._runs:
            reasons = self.incompatibilities(driver, build, card)
            is_unknown = any(reason.kind is IncompatibilityKind.UNKNOWN for reason in reasons)
            self._runs[key] = None if is_unknown else not reasons
        return self._runs[key]

    @cached_property
    def torch_versions(self) -> tuple[str, ...]:
        """The releases of torch in the table, oldest first."""
        return tuple(row.release for row in self.torch)

    @cached_property
    def _codes(self) -> dict[tuple[str, tuple[str, ...], str], DeviceCode | None]:
        return {}

    @cached_property
    def _runs(self) -> dict[tuple[str, str, tuple[str, ...], str, str, str], bool | None]:
        return {}

    @cached_property
    def _torch_by_release(self) -> dict[str, TorchRelease]:
        return {row.release: row for row in self.torch}


def flavour_of(cuda: str) -> str:
    """Return the torch build family of a CUDA version: "cu128" for "12.8", "cpu" for "none"."""
    return "cpu" if cuda == "none" else "cu" + cuda.replace(".", "")


def cuda_of(flavour: str) -> str:
    """Return the CUDA version of a build family: "12.8" for "cu128", "none" for "cpu"."""
    return "none" if flavour == "cpu" else f"{flavour[2:-1]}.{flavour[-1]}"


def code_for_capability(
    cc: str, build: CompiledFor, capabilities: Mapping[str, ComputeCapability]
) -> DeviceCode | None:
    """Return the code of a build that a device of capability `cc` ("8.9") runs, or None.

    The nearest machine code comes first. Machine code runs on the same major and a minor at least
    its own, with the exceptions in `capabilities` (DEVICE_REQUIREMENT of torch/cuda/__init__.py,
    torch 2.13.0); a capability without a row has no exceptions. PTX runs on every capability at or
    above its own, and never on an older one (CUDA C++ Programming Guide, binary and PTX
    compatibility).
    """
    machine = [code for code in build.sm if runs_machine_code(cc, code, capabilities)]
    if machine:
        return DeviceCode(CodeForm.MACHINE, max(machine, key=require_version))
    if build.ptx and require_version(build.ptx) <= require_version(cc):
        return DeviceCode(CodeForm.PTX, build.ptx)
    return None


def runs_machine_code(cc: str, code: str, capabilities: Mapping[str, ComputeCapability]) -> bool:
    """Return whether a device of capability `cc` runs machine code for capability `code`.

    See `code_for_capability` for the source.
    """
    capability = capabilities.get(code)
    if capability is not None and cc in capability.code_not_on:
        return False
    if capability is not None and cc in capability.code_also_on:
        return True
    return _is_same_major(cc, code)


def is_driver_at_least(driver: str, floor: str) -> bool | None:
    """Return whether a driver is at or above a floor; None if it is not a version.

    A branch alone ("535") is its newest driver: the exact one is known only on the machine.
    """
    version = parse_version(_full_driver(driver))
    return None if version is None else version >= require_version(floor)


def _toolkit_incompatibilities(
    driver: str, build: TorchBuild, code: DeviceCode | None, toolkit: CudaToolkit
) -> list[Incompatibility]:
    """Return the reason, if any, why a driver is too old for a build's CUDA version."""
    floor = toolkit.floor_linux
    if not is_driver_at_least(driver, floor):
        evidence: tuple[Evidence, ...] = (toolkit.evidence,)
        return [Incompatibility(IncompatibilityKind.DRIVER_TOO_OLD, floor, evidence)]
    if code is None or code.form is not CodeForm.PTX:
        return []
    first = toolkit.driver_first
    if first is None or is_driver_at_least(driver, first):
        return []
    evidence = (toolkit.evidence, build.evidence)
    return [Incompatibility(IncompatibilityKind.PTX_NEEDS_DRIVER, first, evidence)]


@lru_cache(maxsize=4096)
def _is_same_major(cc: str, code: str) -> bool:
    device, built_for = require_version(cc), require_version(code)
    return device.major == built_for.major and device >= built_for


@lru_cache(maxsize=4096)
def _torch_release_name(version: str) -> str:
    """Return the release of a version in three parts, or "" if it is not a final release."""
    parsed = parse_version(version)
    if parsed is None or parsed.is_prerelease or parsed.is_postrelease or len(parsed.release) > 3:
        return ""
    return ".".join(str(part) for part in (*parsed.release, 0, 0)[:3])


def _full_driver(driver: str) -> str:
    """Return a driver version that sorts after all drivers of a branch, if only that is known."""
    return driver if "." in driver else f"{driver}.999999"
