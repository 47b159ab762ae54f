"""Reads captures: environments as `provision capture` wrote them down."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from provision.diagnostics import Span
from provision.errors import ExternalError
from provision.facts.lazy_tables import load_colab_packages
from provision.facts.schema_torch import Card
from provision.imports.capture_packages import CapturedPackage, find_roots, shorten_names
from provision.imports.content import Content
from provision.imports.json_positions import find_strings
from provision.imports.model import ImportContext, ImportedFile, SourceText
from provision.imports.quoting import quote_text
from provision.imports.requirement_lines import read_requirement
from provision.source.nodes import to_text_file
from provision.verification.diff.snapshot import (
    CAPTURE_SCHEMA,
    Snapshot,
    damaged_document,
    parse_document,
    read_snapshot,
)

_INSTALLERS = frozenset(
    ("pip", "setuptools", "wheel", "uv", "distribute", "pkg-resources", "conda")
)
"""Packages that install others. An environment of provision has its own installer."""
_PLATFORMS = {"linux-arm64": "linux-aarch64", "macos-arm64": "macos-arm64"}
"""Platforms of captures by their name in a spec, which is for linux-x86_64 without `platforms`."""
_HINT = "create a capture on that machine with `provision capture -o capture.json`"
_PYTHON = re.compile(r"3\.\d{1,2}")
_SAME_MEMORY = 0.25
"""Own choice: cards report up to a tenth less than their vendor counts; laptop variants differ by
more.
"""
_SAME_RUNTIME = 0.5
"""Own choice: the share of a runtime's packages that a Colab machine has unchanged at least."""


def read_capture(path: Path, text: str, context: ImportContext) -> ImportedFile:  # noqa: ARG001
    """Return the packages that no other package requires, with Python, CUDA and the GPU.

    Raises:
        ExternalError: not JSON, another version of the schema, or a value of another type.
    """
    name, raw = str(path), text.encode("utf-8", "replace")
    document = parse_document(raw, name)
    if document["schema"] != CAPTURE_SCHEMA:
        why = f"its schema is {document['schema']}; expected {CAPTURE_SCHEMA}"
        raise ExternalError(f"{name} is not a capture", why=why, hint=_HINT)
    reader = _CaptureReader(name, text, document, read_snapshot(raw, name, name))
    reader.read()
    return reader.content.to_file("capture", {name: SourceText(name, text, name)})


class _CaptureReader:
    """Adds the content of one capture."""

    def __init__(
        self, name: str, text: str, document: Mapping[str, Any], snapshot: Snapshot
    ) -> None:
        self.content = Content()
        self.name = name
        self.readings = snapshot.values
        self._file = to_text_file(name, text)
        self._ranges = {route: (start, end) for route, start, end in find_strings(text)}
        self._rows: Mapping[str, Any] = document.get("packages", {})

    def read(self) -> None:
        """Add all that a spec can contain, and a leftover for everything else."""
        installed = self._installed()
        runtime = self._find_runtime(installed)
        if runtime:
            installed = self._leave_runtime(installed, runtime)
        installed = self._leave_unlockable(installed)
        roots = find_roots(installed)
        self._add_packages(installed, roots)
        self._add_python()
        if "torch" in installed:
            self._add_cuda(installed["torch"], is_added="torch" in roots)
        self._add_gpu()
        self._add_platform()

    def _span(self, *route: str) -> Span:
        return self._file.span(*self._ranges.get(route, (0, 0)))

    def _text(self, key: str) -> str:
        """Return a reading that is text, "" if the capture has no value of it.

        Raises:
            ExternalError: it is not text.
        """
        value = self.readings.get(key)
        if value is not None and not isinstance(value, str):
            raise damaged_document(
                self.name, f"{key} is {type(value).__name__}; expected a string or null"
            )
        return value or ""

    def _installed(self) -> dict[str, CapturedPackage]:
        installed = {}
        for key, row in self._rows.items():
            name = str(canonicalize_name(key))
            requires = row.get("requires", []) if isinstance(row, dict) else None
            if not isinstance(requires, list) or not all(isinstance(one, str) for one in requires):
                why = f"`requires` of the package {quote_text(key)} is not a list of names"
                raise damaged_document(self.name, why)
            origin = row.get("origin", "unknown")
            if not isinstance(origin, str):
                why = f"the origin of the package {quote_text(key)} is not a string"
                raise damaged_document(self.name, why)
            installed[name] = CapturedPackage(
                name,
                row["version"],
                origin,
                row.get("requested") is True,
                tuple(str(canonicalize_name(one)) for one in requires),
                self._span("packages", key, "version"),
            )
        return installed

    def _find_runtime(self, installed: Mapping[str, CapturedPackage]) -> str:
        """Return the Colab runtime whose packages these are, as in "2026.07-cpu"; "" for none."""
        product = self._text("place.product")
        if not product.startswith("Google Colab"):
            return ""
        pythons = {name: row.minor for name, row in self.content.facts.runtimes.items()}
        shares = {
            runtime: sum(one.is_held_by(held) for one in installed.values()) / max(1, len(held))
            for runtime, held in load_colab_packages().items()
            if pythons.get(runtime.removesuffix("-cpu")) == self.readings.get("python.minor")
        }
        best = max(shares, key=lambda name: shares[name], default="")
        if best and shares[best] >= _SAME_RUNTIME:
            return best
        self.content.leave(
            self._span("readings", "place.product"),
            "the Colab runtime in this capture is unknown",
            "its packages do not match any Colab runtime in the facts",
            "add a target with `kind: colab`; `provision facts list colab.runtimes` lists the "
            "known runtimes",
        )
        return ""

    def _leave_runtime(
        self, installed: Mapping[str, CapturedPackage], runtime: str
    ) -> dict[str, CapturedPackage]:
        """Add a Colab target, and return the packages that its runtime does not have."""
        packages = load_colab_packages()[runtime]
        held = {name for name, package in installed.items() if package.is_held_by(packages)}
        version = runtime.removesuffix("-cpu")
        span = self._span("readings", "place.product")
        self.content.set(("targets", "colab", "kind"), "colab", span)
        if version != "latest":
            self.content.set(("targets", "colab", "runtime"), version, span)
        self.content.leave(
            span,
            f"{len(held)} packages of the Colab runtime {version} were left out",
            "every machine with this runtime has these versions of them",
            "add a package to `packages` to lock its version",
        )
        return {name: one for name, one in installed.items() if name not in held}

    def _leave_unlockable(
        self, installed: Mapping[str, CapturedPackage]
    ) -> dict[str, CapturedPackage]:
        """Return the packages that an index can have."""
        kept: dict[str, CapturedPackage] = {}
        system = [one for one in installed.values() if one.origin == "system"]
        for package in installed.values():
            reason = package.unlockable_reason
            if reason:
                shown = quote_text(f"{package.name} {package.version}")
                self.content.leave(
                    package.span,
                    f"{shown} is not imported: {reason}",
                    "a spec and its lock contain only packages from indexes",
                    f"if a package index has it, add {quote_text(package.name)}==VERSION to "
                    "`packages`",
                )
            elif package.origin != "system":
                kept[package.name] = package
        if system:
            self.content.leave(
                system[0].span,
                f"{shorten_names(system)}: left out",
                "the operating system installed them for its own programs",
                "add the packages that your code imports to `packages`",
            )
        return kept

    def _add_packages(
        self, installed: Mapping[str, CapturedPackage], roots: Collection[str]
    ) -> None:
        chosen = [installed[name] for name in sorted(roots) if name not in _INSTALLERS]
        for package in chosen:
            read_requirement(self.content, f"{package.name}=={package.version}", package.span)
        tools = [installed[name] for name in sorted(roots) if name in _INSTALLERS]
        if tools:
            self.content.leave(
                tools[0].span,
                f"{shorten_names(tools)}: left out",
                "they install packages, but provision installs with uv",
                "add the packages that your code imports to `packages`",
            )
        required = [one for name, one in sorted(installed.items()) if name not in roots]
        if required:
            self.content.leave(
                required[0].span,
                f"{shorten_names(required)}: left out",
                "other packages require them, so the lock chooses their versions",
                f"add a package to keep its version, such as {required[0].name}=="
                f"{required[0].version.partition('+')[0]}",
            )
        from_conda = [package for package in chosen if package.origin == "conda"]
        if from_conda:
            self.content.leave(
                from_conda[0].span,
                f"{shorten_names(from_conda)}: taken from the package index",
                "conda installed them; a capture lists only conda's Python packages",
                "import the output of `conda env export` to keep conda packages",
            )

    def _add_python(self) -> None:
        python = self._text("python.minor")
        span = self._span("readings", "python.minor")
        if _PYTHON.fullmatch(python):
            self.content.set(("python",), python, span)
        elif python:
            self.content.leave(
                span, f"Python {quote_text(python)} was left out", "it is not Python 3"
            )

    def _add_cuda(self, torch: CapturedPackage, *, is_added: bool) -> None:
        """Add the build of torch, if its version names it or the files of torch do."""
        if "+" in torch.version:
            if not is_added:
                self.content.add_build(torch.version.partition("+")[2].lower(), torch.span)
            return
        cuda = self._text("torch.cuda")
        if re.fullmatch(r"\d+\.\d+", cuda):
            self.content.set(("cuda",), cuda, self._span("readings", "torch.cuda"))

    def _add_gpu(self) -> None:
        name, span = self._text("gpu.name"), self._span("readings", "gpu.name")
        count, error = self.readings.get("gpu.count"), self.readings.get("driver.error")
        has_gpu = any(setting.route == ("gpu",) for setting in self.content.settings)
        if not name:
            self._add_missing_gpu(error)
            return
        card = self._find_card(name)
        if card is None:
            self.content.leave(
                span,
                f"the GPU {quote_text(name)} was left out",
                "this GPU is not in the facts, or the machine has several kinds of GPU",
                "set `gpu` in the spec; `provision facts list gpus` lists the names",
            )
            return
        many = isinstance(count, int) and 1 < count < 100
        short = f"{card.name}:{count}" if many else card.name
        if has_gpu:
            self.content.leave(
                span,
                f"the GPU {short} was left out",
                "the installed torch is a CPU build, which does not use the GPU",
                f"to train on the GPU, set `gpu: {short}` and remove `cuda: none`",
            )
        else:
            self.content.set(("gpu",), short, span)

    def _add_missing_gpu(self, error: object) -> None:
        needs_cuda = any(
            setting.route == ("cuda",) and setting.value != "none"
            for setting in self.content.settings
        )
        span = self._span("readings", "host.platform")
        if self._text("host.platform") == "macos-arm64":
            self.content.set(("gpu",), "mps", span)
        elif not needs_cuda and error in (None, -1):
            self.content.set(("gpu",), "none", span)
        elif error not in (None, -1):
            self.content.leave(
                span,
                "the GPU is unknown: the driver failed when the capture was made",
                f"NVML reported the error {quote_text(str(error))}",
                "set `gpu` in the spec",
            )

    def _find_card(self, name: str) -> Card | None:
        """Return the card of a name such as "NVIDIA A100-SXM4-80GB", with its memory."""
        words = {*name.replace("-", " ").upper().split()}
        capability = self.readings.get("gpu.compute_capability")
        memory = self.readings.get("gpu.vram_bytes")
        best, length = None, 0
        for card in self.content.facts.cards:
            if "+" in words or (capability and card.cc != capability):
                continue
            if isinstance(memory, int) and not card.unified:
                ratio = memory / (card.memory_gb * 2**30)
                if abs(ratio - 1) > _SAME_MEMORY:
                    continue
            for alias in (card.name, *card.aliases):
                parts = alias.replace("-", " ").upper().split()
                if words.issuperset(parts) and len(alias) > length:
                    best, length = card, len(alias)
        return best

    def _add_platform(self) -> None:
        platform, span = self._text("host.platform"), self._span("readings", "host.platform")
        if platform in _PLATFORMS:
            self.content.set(("platforms", 0), _PLATFORMS[platform], span)
        elif platform and platform != "linux-x86_64":
            self.content.leave(
                span,
                f"the platform {quote_text(platform)} was left out",
                "a spec without `platforms` is only for linux-x86_64",
                "set `platforms` in the spec",
            )
