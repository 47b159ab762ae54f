"""Values of `provision fit`: what a training takes, what a target has, and what is measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from provision.agent.probe.model import Status
from provision.effects.machine import MachineResources
from provision.verification.report import Report, rows_of, to_number

GIB = 2**30
COMMAND_CHECK = "V02"
"""The check that runs the command of a project."""


class FitResource(StrEnum):
    """A resource of a machine; the values are words for people."""

    RAM = "RAM"
    GPU = "GPU memory"
    SHM = "shared memory"
    DISK = "disk"


class NeedOrigin(StrEnum):
    """Where the amount that a training takes comes from."""

    ESTIMATED = "estimated"
    MEASURED = "measured"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class ResourceNeed:
    """Bytes that a training takes; with `is_minimum` it takes at least so much."""

    bytes: int
    origin: NeedOrigin
    detail: str
    is_minimum: bool = False


@dataclass(frozen=True, slots=True)
class AvailableAmount:
    """Bytes that a target has, their provider in words, and the source of the number."""

    bytes: int
    provider: str
    source: str


@dataclass(frozen=True, slots=True)
class ResourceFit:
    """One resource of a target: what is needed, what it has, and what helps if it is too little."""

    resource: FitResource
    needs: tuple[ResourceNeed, ...]
    available: AvailableAmount | None
    savings: tuple[str, ...] = ()

    @property
    def need(self) -> ResourceNeed:
        """The need that decides: the largest, where a measurement replaces an estimate."""
        measured = [need for need in self.needs if need.origin is NeedOrigin.MEASURED]
        decides = self.needs
        if any(not need.is_minimum for need in measured):
            decides = tuple(need for need in decides if need.origin is not NeedOrigin.ESTIMATED)
        return max(decides, key=lambda need: need.bytes)

    @property
    def margin(self) -> int | None:
        """The bytes that are left, negative if it does not fit, None if the size is unknown."""
        return None if self.available is None else self.available.bytes - self.need.bytes

    @property
    def fits(self) -> bool | None:
        """Whether it fits; None if the size of the target's resource is unknown.

        It is also unknown what a program would have taken that was killed for memory.
        """
        margin, need = self.margin, self.need
        if margin is None or margin < 0:
            return None if margin is None else False
        is_cut = need.origin is NeedOrigin.MEASURED and need.is_minimum
        return None if is_cut else True


@dataclass(frozen=True, slots=True)
class TargetFit:
    """The resources of one target that the training is known to take something of."""

    target: str
    kind: str
    resources: tuple[ResourceFit, ...]
    not_counted: tuple[str, ...]
    """Parts of the estimates that are unknown."""

    @property
    def fits(self) -> bool | None:
        """Whether everything fits; None if something is unknown and the rest fits."""
        verdicts = [resource.fits for resource in self.resources]
        if False in verdicts:
            return False
        return True if verdicts and None not in verdicts else None


class LargeArray(NamedTuple):
    """A NumPy array that a program kept in a variable to its end."""

    name: str
    dtype: str
    bytes: int


class ModelTensors(NamedTuple):
    """Weights or optimizer of a Keras model, or jax arrays, in a variable of a program at its end.

    `part` is "weights", "optimizer" or "arrays", `on_gpu` is their place.
    """

    name: str
    part: str
    on_gpu: bool
    bytes: int


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The measured peaks of one `provision run`, in bytes; None for an unknown one."""

    path: str
    program: str
    target: str
    created: str
    ram: int | None
    gpu: int | None
    shm: int | None
    is_killed: bool
    """Memory ran out, so that the program would have taken more."""
    arrays: tuple[LargeArray, ...] = ()
    """The largest arrays of the program, for its peak of RAM."""
    spec: str = ""
    """The name of the spec that was run, "" if it is unknown."""
    is_of_other_spec: bool = False
    ram_limits: tuple[int, ...] = ()
    """RAM of the machine, and of the container, in which the program ran."""
    ram_here: int | None = None
    """RAM of this machine, if a local run had another amount."""
    gpu_name: str = ""
    """The GPU with the peak of memory."""
    tensors: tuple[ModelTensors, ...] = ()
    newer_without_peaks: int = 0
    """Later runs that ended before anything was measured."""

    @property
    def has_peaks(self) -> bool:
        """True if anything was measured before the program ended."""
        return any(peak is not None for peak in (self.ram, self.gpu, self.shm))

    @classmethod
    def from_report(cls, path: str, report: Report) -> RunFigures | None:
        """Return the figures of the command in a report; None if it did not run to its end."""
        peak = to_number(report.values.get("command.peak_bytes"))
        passed = any(
            check.id == COMMAND_CHECK and check.status is Status.PASS for check in report.checks
        )
        if peak is None or not passed:
            return None
        card_peak = to_number(report.values.get("command.card_peak_bytes"))
        return cls(
            path,
            "the declared command",
            report.subject.target,
            report.subject.created_utc,
            int(peak),
            int(card_peak) if card_peak is not None else None,
            None,
            is_killed=False,
        )

    @classmethod
    def from_record(cls, path: str, record: Mapping[str, Any]) -> RunFigures:
        """Return the figures of a validated record."""
        program, subject, ended = record["program"], record["subject"], record["ended"]
        peaks, (gpu_peak, gpu_name) = record["peaks"], _card_peak(record)
        limits = (read_bytes(record["limits"], key) for key in ("ram_bytes", "container_bytes"))
        words = (str(program.get(key) or "") for key in ("name", "script"))
        return cls(
            path,
            " ".join(filter(None, words)),
            str(subject.get("target") or ""),
            str(subject.get("created_utc") or ""),
            read_bytes(peaks, "ram_bytes"),
            gpu_peak,
            read_bytes(peaks, "shm_bytes"),
            bool(to_number(ended.get("memory_kills"))),
            tuple(read_arrays(record)),
            str(subject.get("spec") or ""),
            ram_limits=tuple(filter(None, limits)),
            gpu_name=gpu_name,
            tensors=tuple(read_tensors(record)),
        )


@dataclass(frozen=True, slots=True)
class FitSources:
    """What is known of one target beside the facts: its last report, this machine, a run."""

    report: Report | None = None
    machine: MachineResources | None = None
    run: RunFigures | None = None


def read_arrays(record: Mapping[str, Any]) -> Iterator[LargeArray]:
    """Yield the arrays of a record; records of earlier versions have none."""
    for row in rows_of(record, "arrays"):
        size = read_bytes(row, "bytes")
        if size:
            yield LargeArray(str(row.get("name")), str(row.get("dtype")), size)


def describe_arrays(arrays: Iterable[LargeArray]) -> str:
    """Return arrays as text: "images (float64, 5.0 GiB), labels (int64, 2 MiB)"."""
    return ", ".join(
        f"{array.name} ({array.dtype}, {format_size(array.bytes)})" for array in arrays
    )


def read_tensors(record: Mapping[str, Any]) -> Iterator[ModelTensors]:
    """Yield weights, optimizers and jax arrays of a record; earlier records have none."""
    for row in rows_of(record, "tensors"):
        size = read_bytes(row, "bytes")
        if size:
            name, part = str(row.get("name")), str(row.get("part"))
            yield ModelTensors(name, part, row.get("device") == "gpu", size)


def describe_tensors(tensors: Iterable[ModelTensors]) -> str:
    """Return tensors as text: "weights of model (1.5 GiB), params (jax, 900 MiB)"."""
    parts = []
    for one in tensors:
        size = format_size(one.bytes)
        of_jax = one.part == "arrays"
        parts.append(
            f"{one.name} (jax, {size})" if of_jax else f"{one.part} of {one.name} ({size})"
        )
    return ", ".join(parts)


def format_size(count: float) -> str:
    """Return bytes as text: "15.4 GiB", "900 MiB"."""
    if count >= GIB:
        return f"{count / GIB:.1f} GiB"
    return f"{count / 2**20:.0f} MiB"


def read_bytes(block: Mapping[str, Any], key: str) -> int | None:
    """Return a size in foreign JSON; None for anything else."""
    number = to_number(block.get(key))
    return None if number is None or number < 0 else int(number)


def _card_peak(record: Mapping[str, Any]) -> tuple[int | None, str]:
    """Return the memory that a run took of its fullest card, and the card's name."""
    used: list[tuple[int, str]] = []
    for card in rows_of(record, "cards"):
        peak, before = (read_bytes(card, key) for key in ("peak_bytes", "before_bytes"))
        if peak is not None:
            used.append((max(peak - (before or 0), 0), str(card.get("name") or "")))
    return max(used, default=(None, ""))
