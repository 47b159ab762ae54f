"""The effects on Colab."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from provision.effects.service import ServiceEffect


@dataclass(frozen=True, slots=True)
class ColabEffect(ServiceEffect):
    """A change of the runtimes of a Colab account."""

    service: ClassVar[str] = "provision.adapters.services:perform_on_colab"


@dataclass(frozen=True, slots=True)
class RunOnColab(ColabEffect):
    """Allocate a runtime as `session`, run a cell to its end, and write its report to `report`.

    The runtime is released however the run ends, except that `keep_session` leaves it running
    after an accepted report. A report is accepted if it carries `nonce` and `lock_digest`.
    `gpu` is Colab's name ("T4"; "" for no GPU), `folder` keeps the files of the session, and
    `timeout_s` limits one run of the cell.
    """

    is_billable: ClassVar[bool] = True

    session: str
    gpu: str
    high_memory: bool
    cell: bytes
    nonce: str
    lock_digest: str
    folder: Path
    report: Path
    timeout_s: int
    keep_session: bool = False


@dataclass(frozen=True, slots=True)
class StopColabSession(ColabEffect):
    """Release the runtime that was allocated as `session`; nothing happens if it is gone."""

    session: str
    folder: Path
