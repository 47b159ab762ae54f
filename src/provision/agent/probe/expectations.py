"""The expectations of a lock (`expectations.json`), read strictly into frozen values."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..core.json_fields import FieldReader
from ..core.versions import normalize_name
from .model import JsonObject, Need, ProbeError, Proof, Tier

SCHEMA = "provision.expectations/1"
PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8")
FRAMEWORKS = ("hf-trainer", "torch", "none")
METHODS = ("full", "lora", "qlora", "inference")
STRATEGIES = ("none", "ddp", "fsdp", "deepspeed-zero2", "deepspeed-zero3")
LAUNCHERS = ("auto", "python", "torchrun", "accelerate")


@dataclass(frozen=True, slots=True)
class Requires:
    """Minima that the spec declares; None if undeclared. Bytes, and specifiers (">=580")."""

    ram_bytes: int | None
    disk_bytes: int | None
    shm_bytes: int | None
    vram_bytes: int | None
    driver: str | None
    compute_capability: str | None


@dataclass(frozen=True, slots=True)
class Model:
    """The shape of the declared model; None where the spec is silent."""

    parameters: int | None
    hidden_size: int | None
    layers: int | None


@dataclass(frozen=True, slots=True)
class Training:
    """The declared training; `batch_size` in samples a device, `sequence_length` in tokens."""

    framework: str
    precision: str
    dataloader_workers: int
    gradient_checkpointing: bool
    optimizer: str
    arguments: JsonObject
    method: str = "full"
    model: Model | None = None
    batch_size: int | None = None
    sequence_length: int | None = None
    torch_compile: bool = False
    strategy: str = "none"
    launcher: str = "auto"


@dataclass(frozen=True, slots=True)
class CardFacts:
    """The vendor's figures of the declared card: bytes, GB/s, dense TFLOP/s by number format."""

    memory_bytes: int
    bandwidth_gb_s: float | None
    tflops: dict[str, float]
    source: str


@dataclass(frozen=True, slots=True)
class MemorySaving:
    """A change of `training` that saves memory: field to value, and bytes saved on each card."""

    change: JsonObject
    saves_bytes: int


@dataclass(frozen=True, slots=True)
class Expectations:
    """One expectations file; `packages` by PEP 503 name, `flavour` None if torch is not locked."""

    tool: dict[str, str]
    spec: dict[str, str]
    lock: dict[str, str]
    target: dict[str, str]
    tier: Tier
    timeout_s: float
    nonce: str
    python_version: str
    python_prefix: str
    platform: str
    flavour: str | None
    glibc_min: str | None
    packages: dict[str, str]
    direct: tuple[str, ...]
    extras_allowed: frozenset[str]
    gpu_type: str | None
    gpu_count: int
    requires: Requires
    paths: dict[str, str]
    env: dict[str, str]
    secrets: tuple[str, ...]
    training: Training
    card: CardFacts | None = None
    """None where no card is declared or the facts have no row of it."""
    estimate_bytes: int | None = None
    """What the facts expect the declared training to take of the card's memory, of RAM without one;
    None where the spec says too little.
    """
    levers: tuple[MemorySaving, ...] = ()
    """Changes of the declared training that save memory, the one that saves most first."""
    simulated: tuple[str, ...] = ()
    """Parts of this machine that are not real, as its maker declares."""
    shared: bool = False
    """The interpreter is an image's, whose other packages are observed and not judged."""
    driver_min: str | None = None
    """The oldest NVIDIA driver that the CUDA of the locked torch runs on, as the facts say; None
    where no CUDA is locked.
    """
    installed: str = ""
    """Where the installer noted how each package came there; "": installed.json in the prefix."""
    conda: frozenset[str] = frozenset()
    """The conda files that are locked, each as NAME-VERSION-BUILD: the installer noted which Python
    packages each of them brought.
    """

    @property
    def provenance_file(self) -> str:
        """The file in which the installer noted how each package came there."""
        return self.installed or os.path.join(self.python_prefix, "installed.json")

    @property
    def driver_specifiers(self) -> tuple[str, ...]:
        """Specifiers of the driver's version: the spec's, and those of the locked torch's CUDA."""
        return tuple(
            one
            for one in (self.requires.driver, f">={self.driver_min}" if self.driver_min else None)
            if one
        )

    @property
    def proof(self) -> Proof:
        """The strongest training run that the declared framework and the locked packages allow."""
        if (
            "torch" not in self.packages
            or self.training.framework == "none"
            or self.training.method == "inference"
        ):
            return Proof.IMPORTS
        if self.training.framework == "hf-trainer" and "transformers" in self.packages:
            return Proof.HF_TRAINER
        return Proof.TORCH

    def meets(self, need: Need) -> bool:
        """Return whether the declared environment contains what a check needs."""
        if need is Need.TORCH:
            return "torch" in self.packages
        if need is Need.GPU:
            return self.gpu_type is not None
        if need is Need.SEVERAL:
            return self.gpu_count > 1
        if need is Need.COMPILE:
            return self.training.torch_compile or self.tier in (Tier.DEEP, Tier.BURN)
        if need is Need.WORKERS:
            return self.training.dataloader_workers > 0
        undeclared = {
            Need.STRATEGY: self.training.strategy == "none",
            Need.ADAPTER: self.training.method not in ("lora", "qlora"),
        }
        return self.proof is not Proof.IMPORTS and not undeclared.get(need)

    @property
    def device(self) -> str:
        """Torch's name for the declared device."""
        return {None: "cpu", "mps": "mps"}.get(self.gpu_type, "cuda")

    def declares(self, route: str) -> bool:
        """Return whether the spec declares a route ("requires.ram_bytes", "paths", "glibc_min")."""
        value: Any = self
        for part in route.split("."):
            value = getattr(value, part)
        return value not in (None, (), {}, frozenset(), 0)


def load_expectations(path: Path) -> Expectations:
    """Read an expectations file. Raises ProbeError, whose line names file and field."""
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise ProbeError(f"cannot read the expectations {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise ProbeError(f"the expectations {path} are not valid JSON; make them again") from None
    expected = parse_expectations(document, str(path))
    # Where an environment lies is not known of a machine that the probe is carried to: it is the
    # one whose Python runs the probe.
    return expected if expected.python_prefix else replace(expected, python_prefix=sys.prefix)


def parse_expectations(document: object, where: str = "expectations") -> Expectations:
    """Return the expectations of a decoded document.

    Raises:
        ProbeError: a field is missing or of the wrong type; the message names it.
    """
    if not isinstance(document, dict):
        raise ProbeError(f"{where}: the file has to hold one JSON object")
    reader = FieldReader({**_DEFAULTS, **document}, where, _field_error)
    schema = reader.text("schema")
    if schema != SCHEMA:
        raise ProbeError(
            f"{where}: schema is {schema!r}, this probe reads {SCHEMA!r}; use the probe "
            "that belongs to the tool which wrote the file"
        )
    return Expectations(
        tool=reader.text_map("tool"),
        spec=reader.text_map("spec"),
        lock=reader.text_map("lock"),
        target=reader.text_map("target"),
        tier=Tier(reader.one_of("tier", tuple(tier.value for tier in Tier))),
        timeout_s=reader.number("timeout_s"),
        nonce=reader.text("nonce"),
        python_version=reader.text("python.version"),
        python_prefix=reader.text("python.prefix"),
        platform=reader.text("platform"),
        flavour=reader.optional_text("flavour"),
        glibc_min=reader.optional_text("glibc_min"),
        packages=_packages(reader),
        direct=tuple(normalize_name(name) for name in reader.texts("direct")),
        extras_allowed=frozenset(normalize_name(name) for name in reader.texts("extras_allowed")),
        gpu_type=reader.optional_text("gpu.type"),
        gpu_count=int(reader.number("gpu.count")),
        requires=Requires(
            ram_bytes=reader.optional_size("requires.ram_bytes"),
            disk_bytes=reader.optional_size("requires.disk_bytes"),
            shm_bytes=reader.optional_size("requires.shm_bytes"),
            vram_bytes=reader.optional_size("requires.vram_bytes"),
            driver=reader.optional_text("requires.driver"),
            compute_capability=reader.optional_text("requires.compute_capability"),
        ),
        paths=reader.text_map("paths"),
        env=reader.text_map("env"),
        secrets=reader.texts("secrets"),
        training=_training(reader),
        card=_card(reader),
        estimate_bytes=reader.optional_size("estimate_bytes"),
        levers=_levers(reader),
        simulated=reader.texts("simulated"),
        shared=reader.typed("shared", bool, "true or false"),
        driver_min=reader.optional_text("driver_min"),
        installed=reader.text("installed"),
        conda=frozenset(reader.texts("conda")),
    )


_DEFAULTS: JsonObject = {
    "extras_allowed": [],
    "card": None,
    "estimate_bytes": None,
    "levers": [],
    "simulated": [],
    "shared": False,
    "driver_min": None,
    "installed": "",
    "conda": [],
}
"""Fields that expectations of earlier versions lack."""


def _field_error(message: str, reason: str) -> ProbeError:
    return ProbeError(f"{message}, {reason}" if reason else message)


def _packages(reader: FieldReader) -> dict[str, str]:
    """Return the locked packages, normalized name to version."""
    locked = {}
    for position, entry in enumerate(reader.items("packages")):
        name, version = (
            (entry.get("name"), entry.get("version")) if isinstance(entry, dict) else (None, None)
        )
        if not isinstance(name, str) or not isinstance(version, str):
            requirement = '{"name": text, "version": text}'
            raise reader.error(f"packages[{position}]", requirement, entry)
        locked[normalize_name(name)] = version
    return locked


def _training(reader: FieldReader) -> Training:
    training = reader.section("training")
    return Training(
        framework=training.one_of("framework", FRAMEWORKS),
        precision=training.one_of("precision", PRECISIONS),
        dataloader_workers=int(training.number("dataloader_workers")),
        gradient_checkpointing=training.typed("gradient_checkpointing", bool, "true or false"),
        optimizer=training.text("optimizer"),
        arguments=training.mapping("arguments"),
        **(_declared_run(training) if "method" in training.document else {}),
    )


def _declared_run(training: FieldReader) -> JsonObject:
    model = training.optional_section("model") if "model" in training.document else None
    sizes = ("parameters", "hidden_size", "layers")
    return {
        "method": training.one_of("method", METHODS),
        "model": Model(*(model.optional_size(name) for name in sizes)) if model else None,
        "batch_size": training.optional_size("batch_size"),
        "sequence_length": training.optional_size("sequence_length"),
        "torch_compile": training.typed("torch_compile", bool, "true or false"),
        "strategy": training.one_of("strategy", STRATEGIES),
        "launcher": training.one_of("launcher", LAUNCHERS),
    }


def _card(reader: FieldReader) -> CardFacts | None:
    card = reader.optional_section("card")
    if card is None:
        return None
    has_bandwidth = card.document.get("bandwidth_gb_s") is not None
    return CardFacts(
        int(card.number("memory_bytes")),
        card.number("bandwidth_gb_s") if has_bandwidth else None,
        {name: card.number(f"tflops.{name}") for name in card.mapping("tflops")},
        card.text("source"),
    )


def _levers(reader: FieldReader) -> tuple[MemorySaving, ...]:
    savings = []
    for position, row in enumerate(reader.items("levers")):
        change, saved = (
            (row.get("change"), row.get("saves_bytes")) if isinstance(row, dict) else (None, None)
        )
        if not isinstance(change, dict) or not isinstance(saved, int) or isinstance(saved, bool):
            requirement = '{"change": object, "saves_bytes": integer}'
            raise reader.error(f"levers[{position}]", requirement, row)
        savings.append(MemorySaving(change, saved))
    return tuple(savings)
