"""Which compiled code runs on which GPU, which driver runs which CUDA, which system runs which
wheel: the arithmetic over the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from provision.facts.schema_torch import (
    Card,
    ComputeCapability,
    CudaToolkit,
    DriverBranch,
    Evidence,
    TorchBuild,
)
from provision.facts.versions import parse_version, require_version


class CodeForm(StrEnum):
    """How code for a GPU is shipped: machine code, or PTX that the driver compiles when the program
    starts.
    """

    MACHINE = "sm"
    PTX = "ptx"


class DeviceCode(NamedTuple):
    """The code of a build that a GPU would run."""

    form: CodeForm
    cc: str


class IncompatibilityKind(StrEnum):
    """What keeps a build from running on a card with a driver. UNKNOWN: a table has no row that
    would tell.
    """

    UNKNOWN = "unknown"
    NO_CODE = "no code for the card in the build"
    DRIVER_TOO_OLD = "driver too old for that CUDA"
    DRIVER_BEFORE_CARD = "driver older than the card"
    DRIVER_AFTER_CARD = "driver too new for the card"
    PTX_NEEDS_DRIVER = "driver too old to compile the build's PTX"


class Incompatibility(NamedTuple):
    """One hindrance: the value that would do (the driver or branch to have, "" where there is
    none), and the facts it rests on.
    """

    kind: IncompatibilityKind
    required: str
    evidence: tuple[Evidence, ...]


def code_for(
    cc: str, build: TorchBuild, capabilities: Mapping[str, ComputeCapability]
) -> DeviceCode | None:
    """Return the code that a device of capability `cc` ("8.9") would run from a build, the nearest
    machine code first; None when there is none.

    Machine code runs on the same major and a minor at least its own, with the exceptions in
    `capabilities` (DEVICE_REQUIREMENT of
    torch/cuda/__init__.py, torch 2.13.0). PTX runs on every capability at or above its own; it
    never stands for an older one (CUDA C++ Programming Guide,
    binary and PTX compatibility). A capability without a row has no exceptions.
    """
    machine = [code for code in build.sm if runs_machine_code(cc, code, capabilities)]
    if machine:
        return DeviceCode(CodeForm.MACHINE, max(machine, key=require_version))
    if build.ptx and require_version(build.ptx) <= require_version(cc):
        return DeviceCode(CodeForm.PTX, build.ptx)
    return None


def runs_machine_code(cc: str, code: str, capabilities: Mapping[str, ComputeCapability]) -> bool:
    """Tell whether a device of capability `cc` runs machine code made for capability `code`; source
    as in `code_for`.
    """
    rule = capabilities.get(code)
    if rule is not None and cc in rule.code_not_on:
        return False
    if rule is not None and cc in rule.code_also_on:
        return True
    return _same_major(cc, code)


@lru_cache(maxsize=4096)
def _same_major(cc: str, code: str) -> bool:
    device, made_for = require_version(cc), require_version(code)
    return device.major == made_for.major and device >= made_for


def last_driver_branch(card: Card, drivers: Iterable[DriverBranch]) -> DriverBranch | None:
    """Return the last driver branch that knows the card's generation; None when no branch in the
    table drops it.
    """
    return next((branch for branch in drivers if card.arch in branch.drops_after), None)


def newest_cuda(driver: str, toolkits: Iterable[CudaToolkit]) -> str | None:
    """Return the newest CUDA ("12.8") whose first driver is not newer than `driver`, by the Linux
    numbers of NVIDIA's runfiles.

    A branch alone ("580") is taken as any driver of that branch. None for a driver older than
    all in the table, or text that is no version.
    """
    have = parse_version(_full_driver_version(driver))
    if have is None:
        return None
    brought = [
        row.cuda
        for row in toolkits
        if row.driver_first is not None and require_version(row.driver_first) <= have
    ]
    return max(brought, key=require_version, default=None)


def is_driver_at_least(driver: str, floor: str) -> bool | None:
    """Tell whether a driver ("535.104.05", or a branch alone: "535") is at or above a floor
    ("525.60.13"); None when it is no version.

    Of a branch alone, its newest driver is meant: what a machine has of it is known only on the
    machine.
    """
    have = parse_version(_full_driver_version(driver))
    return None if have is None else have >= require_version(floor)


def find_incompatibilities(
    driver: str,
    card: Card,
    build: TorchBuild | None,
    toolkit: CudaToolkit | None,
    drivers: Iterable[DriverBranch],
    tables: Mapping[str, ComputeCapability],
    *,
    windows: bool,
) -> tuple[Incompatibility, ...]:
    """Return all that keeps a build from running on a card with a driver; () when it runs.

    Floors: NVIDIA, CUDA Compatibility (minor versions); PTX is not covered by that and asks for
    a driver that brings the build's own CUDA.
    """
    if build is None or toolkit is None or parse_version(_full_driver_version(driver)) is None:
        return (Incompatibility(IncompatibilityKind.UNKNOWN, "", ()),)
    capability, last = tables.get(card.cc), last_driver_branch(card, drivers)
    code, known = code_for(card.cc, build, tables), (card.evidence, build.evidence)
    floor = toolkit.floor_windows if windows else toolkit.floor_linux
    found = []
    if code is None:
        found.append(Incompatibility(IncompatibilityKind.NO_CODE, "", known))
    if not is_driver_at_least(driver, floor):
        found.append(
            Incompatibility(IncompatibilityKind.DRIVER_TOO_OLD, floor, (toolkit.evidence,))
        )
    elif (
        not windows
        and code is not None
        and code.form is CodeForm.PTX
        and toolkit.driver_first is not None
        and not is_driver_at_least(driver, toolkit.driver_first)
    ):
        found.append(
            Incompatibility(
                IncompatibilityKind.PTX_NEEDS_DRIVER,
                toolkit.driver_first,
                (toolkit.evidence, build.evidence),
            )
        )
    if last is not None and int(_branch(driver)) > int(last.branch):
        found.append(
            Incompatibility(
                IncompatibilityKind.DRIVER_AFTER_CARD, last.branch, (card.evidence, last.evidence)
            )
        )
    if (
        capability is not None
        and capability.first_driver is not None
        and int(_branch(driver)) < int(capability.first_driver)
    ):
        found.append(
            Incompatibility(
                IncompatibilityKind.DRIVER_BEFORE_CARD,
                capability.first_driver,
                (card.evidence, capability.evidence),
            )
        )
    return tuple(found)


def _branch(driver: str) -> str:
    return driver.split(".", maxsplit=1)[0]


def _full_driver_version(driver: str) -> str:
    return driver if "." in driver else f"{driver}.999999"
