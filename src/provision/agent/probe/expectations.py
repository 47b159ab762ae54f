"""The expectations of a lock (`expectations.json`), read strictly into frozen values."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..core.json_fields import FieldReader
from ..core.versions import normalize_name
from .card_facts import CardFacts, Lever, read_card, read_levers
from .instructions import TENSORFLOW, avx_packages
from .model import JsonObject, Need, ProbeError, Proof, Tier
from .replicas import DeclaredReplicas, read_replicas

SCHEMA = "provision.expectations/1"
PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8")
FRAMEWORKS = ("hf-trainer", "torch", "keras", "jax", "none")
BACKENDS = ("tensorflow", "jax", "torch")
METHODS = ("full", "lora", "qlora", "inference")
STRATEGIES = ("none", "ddp", "fsdp", "deepspeed-zero2", "deepspeed-zero3")
LAUNCHERS = ("auto", "python", "torchrun", "accelerate")


@dataclass(frozen=True, slots=True)
class DeclaredMinima:
    """Minima that the spec declares; None if undeclared. Bytes, and specifiers (">=580")."""

    ram_bytes: int | None
    disk_bytes: int | None
    shm_bytes: int | None
    vram_bytes: int | None
    driver: str | None
    compute_capability: str | None


@dataclass(frozen=True, slots=True)
class DeclaredModel:
    """The shape of the declared model; None for what the spec does not declare."""

    parameters: int | None
    hidden_size: int | None
    layers: int | None


@dataclass(frozen=True, slots=True)
class DeclaredTraining:
    """The declared training; `batch_size` in samples a device, `sequence_length` in tokens."""

    framework: str
    precision: str
    dataloader_workers: int
    gradient_checkpointing: bool
    optimizer: str
    arguments: JsonObject
    method: str = "full"
    model: DeclaredModel | None = None
    batch_size: int | None = None
    sequence_length: int | None = None
    torch_compile: bool = False
    strategy: str = "none"
    launcher: str = "auto"
    backend: str = ""


@dataclass(frozen=True, slots=True)
class DeclaredCode:
    """The digest of the project's code, its folder here, and the file that lists its files."""

    digest: str
    folder: str
    manifest: str


@dataclass(frozen=True, slots=True)
class DeclaredCommand:
    """The command of the project: arguments, exit code, files that it writes, and its output.

    `stdout` is a regular expression that matches somewhere in it; None for any output. `run` is the
    command line that runs a program at the target; "" if there is none.
    """

    argv: tuple[str, ...]
    exit: int
    files: tuple[str, ...]
    stdout: str | None
    run: str = ""


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
    requires: DeclaredMinima
    paths: dict[str, str]
    env: dict[str, str]
    secrets: tuple[str, ...]
    training: DeclaredTraining
    card: CardFacts | None = None
    """None if no card is declared or the facts have no row of it."""
    estimate_bytes: int | None = None
    """Memory of the declared training by the facts, on the card or in RAM; None if unknown."""
    levers: tuple[Lever, ...] = ()
    """Changes of the declared training that save memory, the one that saves most first."""
    simulated: tuple[str, ...] = ()
    """Parts of this machine that are not real, as its maker declares."""
    shared: bool = False
    """The interpreter is an image's, whose other packages are observed and not judged."""
    driver_min: str | None = None
    """The oldest NVIDIA driver for the locked torch's CUDA by the facts; None without CUDA."""
    installed: str = ""
    """The installer's note of each package's provenance; "": installed.json in the prefix."""
    conda: frozenset[str] = frozenset()
    """The locked conda files, each as NAME-VERSION-BUILD; the installer noted their packages."""
    code: DeclaredCode | None = None
    command: DeclaredCommand | None = None
    sources: JsonObject = field(default_factory=dict)  # digest and `editable` by package
    training_proof: str = ""
    """The earlier report that has proven the training, which is not run again; "" for none."""
    replicas: DeclaredReplicas | None = None
    """The machines of a job; None for the single machine of another kind."""

    @property
    def is_baked(self) -> bool:
        """True if the image of a job contains the environment."""
        return self.shared and self.replicas is not None

    @property
    def provenance_file(self) -> str:
        """The file with the installer's note of each package's provenance."""
        return self.installed or os.path.join(self.python_prefix, "installed.json")

    @property
    def driver_specifiers(self) -> tuple[str, ...]:
        """Specifiers of the driver's version: the spec's, and those of the locked torch's CUDA."""
        locked = f">={self.driver_min}" if self.driver_min else None
        return tuple(filter(None, (self.requires.driver, locked)))

    @property
    def proof(self) -> Proof:
        """The strongest training run that the declared framework and the locked packages allow."""
        training = self.training
        if training.framework == "none" or training.method == "inference":
            return Proof.IMPORTS
        if training.framework in ("jax", "keras"):
            backends = TENSORFLOW if self.backend == "tensorflow" else {self.backend}
            if training.framework not in self.packages or backends.isdisjoint(self.packages):
                return Proof.IMPORTS
            return Proof.JAX if training.framework == "jax" else Proof.KERAS
        if "torch" not in self.packages:
            return Proof.IMPORTS
        if self.training.framework == "hf-trainer" and "transformers" in self.packages:
            return Proof.HF_TRAINER
        return Proof.TORCH

    def meets(self, need: Need) -> bool:
        """Return whether the declared environment contains what a check needs."""
        training = self.training
        trains = self.proof in (Proof.HF_TRAINER, Proof.TORCH) and not self.training_proof
        has_framework = self.proof in (Proof.JAX, Proof.KERAS)
        return {
            Need.TORCH: "torch" in self.packages,
            Need.FRAMEWORK: has_framework,
            Need.ARRAYS: has_framework and self.backend != "torch",
            Need.KERAS: self.proof is Proof.KERAS,
            Need.INSTRUCTIONS: bool(avx_packages(self.packages, self.platform)),
            Need.GPU: self.gpu_type is not None,
            Need.SEVERAL: self.gpu_count > 1,
            Need.COMPILE: training.torch_compile or self.tier in (Tier.DEEP, Tier.BURN),
            Need.WORKERS: training.dataloader_workers > 0,
            Need.CODE: self.code is not None,
            Need.COMMAND: self.command is not None,
            Need.REPLICAS: self.replicas is not None,
            Need.TRAINING: trains,
            Need.STRATEGY: trains and training.strategy != "none",
            Need.ADAPTER: trains and training.method in ("lora", "qlora"),
        }[need]

    @property
    def backend(self) -> str:
        """The library of arrays that a run with jax or Keras computes with."""
        return "jax" if self.training.framework == "jax" else self.training.backend

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
        raise ProbeError(f"cannot read the expectations file {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise ProbeError(f"the expectations file {path} is not valid JSON; recreate it") from None
    expected = parse_expectations(document, str(path))
    # The prefix is unknown on a machine to which the probe was copied: it is that of its Python.
    return expected if expected.python_prefix else replace(expected, python_prefix=sys.prefix)


def parse_expectations(document: object, where: str = "expectations") -> Expectations:
    """Return the expectations of a decoded document.

    Raises:
        ProbeError: a field is missing or of the wrong type; the message names it.
    """
    if not isinstance(document, dict):
        raise ProbeError(f"{where}: expected a JSON object")
    reader = FieldReader({**_DEFAULTS, **document}, where, _field_error)
    schema = reader.text("schema")
    if schema != SCHEMA:
        raise ProbeError(
            f"{where}: expected schema {SCHEMA!r}, got {schema!r}; use the probe from the "
            "version of provision that wrote the file"
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
        requires=DeclaredMinima(
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
        card=read_card(reader),
        estimate_bytes=reader.optional_size("estimate_bytes"),
        levers=read_levers(reader),
        simulated=reader.texts("simulated"),
        shared=reader.typed("shared", bool, "true or false"),
        driver_min=reader.optional_text("driver_min"),
        installed=reader.text("installed"),
        conda=frozenset(reader.texts("conda")),
        code=_code(reader.optional_section("code")),
        command=_command(reader.optional_section("command")),
        sources=reader.mapping("sources"),
        training_proof=reader.text("training_proof"),
        replicas=read_replicas(reader.optional_section("replicas")),
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
    "code": None,
    "command": None,
    "sources": {},
    "training_proof": "",
    "replicas": None,
}
"""Fields that expectations of earlier versions lack."""


def _field_error(message: str, reason: str) -> ProbeError:
    return ProbeError(f"{message}, {reason}" if reason else message)


def _packages(reader: FieldReader) -> dict[str, str]:
    """Return the locked packages, normalized name to version."""
    locked = {}
    for position, entry in enumerate(reader.items("packages")):
        match entry:
            case {"name": str(name), "version": str(version)}:
                locked[normalize_name(name)] = version
            case _:
                raise reader.error(f"packages[{position}]", "an object with two strings", entry)
    return locked


def _training(reader: FieldReader) -> DeclaredTraining:
    training = reader.section("training")
    declared = DeclaredTraining(
        framework=training.one_of("framework", FRAMEWORKS),
        precision=training.one_of("precision", PRECISIONS),
        dataloader_workers=int(training.number("dataloader_workers")),
        gradient_checkpointing=training.typed("gradient_checkpointing", bool, "true or false"),
        optimizer=training.text("optimizer"),
        arguments=training.mapping("arguments"),
    )
    if "method" not in training.document:
        return declared
    model = training.optional_section("model") if "model" in training.document else None
    sizes = ("parameters", "hidden_size", "layers")
    return replace(
        declared,
        method=training.one_of("method", METHODS),
        model=DeclaredModel(*map(model.optional_size, sizes)) if model else None,
        batch_size=training.optional_size("batch_size"),
        sequence_length=training.optional_size("sequence_length"),
        torch_compile=training.typed("torch_compile", bool, "true or false"),
        strategy=training.one_of("strategy", STRATEGIES),
        launcher=training.one_of("launcher", LAUNCHERS),
        backend=training.one_of("backend", BACKENDS) if "backend" in training.document else "",
    )


def _code(code: FieldReader | None) -> DeclaredCode | None:
    if code is None:
        return None
    # The folder is known on the device only.
    folder, manifest = (str(code.document.get(key) or "") for key in ("folder", "manifest"))
    return DeclaredCode(code.text("digest"), folder, manifest)


def _command(command: FieldReader | None) -> DeclaredCommand | None:
    if command is None:
        return None
    argv = command.texts("argv")
    if not argv:
        raise command.error("argv", "a program and its arguments", argv)
    return DeclaredCommand(
        argv,
        int(command.number("exit")),
        command.texts("files"),
        command.optional_text("stdout"),
        str(command.document.get("run") or ""),
    )
