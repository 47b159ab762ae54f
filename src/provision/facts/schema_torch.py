"""Row types of the fact tables about torch, CUDA, cards and Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from provision.facts.evidence import Evidence

Strings = tuple[str, ...]


class TorchRelease(NamedTuple):
    """A release of torch: its Pythons (major.minor) and the CUDA flavours of its builds.

    `builds` maps a flavour such as "cu128" to the confidence that it can be installed; `default` is
    the flavour that the public index serves for Linux x86_64. `cudnn`, `nccl` and `cuda_runtime`
    are the pins of that default build ("" for none). `pythons_aarch64`,
    `pythons_windows`, `pythons_macos` (arm64) and `pythons_macos_x86_64` are None if they equal
    `pythons`, and empty if the platform has no wheel. `torchaudio` and `torchvision` are empty if
    they have no release for this one.
    """

    release: str
    released: str
    default: str
    builds: Mapping[str, str]
    python: str
    pythons: Strings
    glibc: str
    triton: str
    torchvision: Strings
    evidence: Evidence
    pythons_aarch64: Strings | None = None
    pythons_windows: Strings | None = None
    pythons_macos: Strings | None = None
    pythons_macos_x86_64: Strings | None = None
    torchaudio: Strings = ()
    default_aarch64: str = "cpu"
    glibc_aarch64: str = ""
    cudnn: str = ""
    nccl: str = ""
    cuda_runtime: str = ""

    @property
    def flavours(self) -> Strings:
        """All build families, `cpu` first: the PyTorch index has a CPU build of every release."""
        return ("cpu", *self.builds)

    def pythons_on(self, platform: str) -> Strings:
        """Return the Pythons that have a wheel on a platform such as "linux-aarch64"."""
        pythons = {
            "linux-aarch64": self.pythons_aarch64,
            "windows-x86_64": self.pythons_windows,
            "macos-arm64": self.pythons_macos,
            "macos-x86_64": self.pythons_macos_x86_64,
        }.get(platform)
        return self.pythons if pythons is None else pythons

    def default_on(self, platform: str) -> str:
        """Return the flavour that the public index serves for a platform.

        It is a CUDA flavour on Linux (on aarch64 from 2.11 on) and "cpu" elsewhere.
        """
        defaults = {"linux-x86_64": self.default, "linux-aarch64": self.default_aarch64}
        return defaults.get(platform, "cpu")


class TorchBuild(NamedTuple):
    """The capabilities that one CUDA build of torch has code for.

    It has machine code for `sm` and PTX of capability `ptx` ("" for none).
    """

    release: str
    flavour: str
    platform: str
    sm: Strings
    evidence: Evidence
    ptx: str = ""

    @classmethod
    def from_columns(cls, *, sm: str, **columns: Any) -> Self:
        """Return a row of the table, which writes capabilities between spaces."""
        return cls(sm=tuple(sm.split()), **columns)


class TensorFlowRelease(NamedTuple):
    """A TensorFlow release: the Pythons with a Linux x86_64 wheel, and what it is compiled for.

    It has machine code for `sm` and PTX of capability `ptx` ("" for none).
    """

    release: str
    pythons: Strings
    cuda: str
    cudnn: str
    sm: Strings
    ptx: str
    evidence: Evidence

    @classmethod
    def from_columns(cls, *, sm: str, **columns: Any) -> Self:
        """Return a row of the table, which writes capabilities between spaces."""
        return cls(sm=tuple(sm.split()), **columns)


class JaxPlugin(NamedTuple):
    """A release of jax's plugin for a CUDA major, and the capabilities that it is compiled for.

    XLA compiles most code for the card that it finds; the plugin's own kernels are for random
    numbers and linear algebra. Fields as in `TensorFlowRelease`.
    """

    release: str
    cuda: str
    pythons: Strings
    sm: Strings
    ptx: str
    evidence: Evidence

    @classmethod
    def from_columns(cls, *, sm: str, **columns: Any) -> Self:
        """Return a row of the table, which writes capabilities between spaces."""
        return cls(sm=tuple(sm.split()), **columns)


CompiledFor = TorchBuild | TensorFlowRelease | JaxPlugin
"""What was compiled for some compute capabilities."""


class CudaToolkit(NamedTuple):
    """A CUDA toolkit.

    Its compiler generates code for `capabilities` (empty: not read, between `cc_min` and `cc_max`)
    and supports gcc up to major `gcc_max`. Programs built with it run on drivers from `floor_linux`
    and `floor_windows` on. `driver_first` and `driver_bundled` are the Linux drivers of its first
    and last update, None if unknown.
    """

    cuda: str
    capabilities: Strings
    cc_min: str
    cc_max: str
    gcc_max: int
    driver_first: str | None
    driver_bundled: str | None
    floor_linux: str
    floor_windows: str
    evidence: Evidence

    @classmethod
    def from_columns(cls, *, capabilities: str | None, **columns: Any) -> Self:
        """Return a row of the table, which writes capabilities between spaces."""
        return cls(capabilities=tuple((capabilities or "").split()), **columns)

    def driver_floor(self, *, windows: bool) -> str:
        """Return the oldest driver that runs programs built with this toolkit."""
        return self.floor_windows if windows else self.floor_linux


class DriverBranch(NamedTuple):
    """A branch of the NVIDIA driver, with the newest CUDA it supports.

    `drops_after` lists the GPU generations that it is the last branch for; `end_of_life` is a month
    ("2028-08"), "ended" or None.
    """

    branch: str
    cuda_max: str
    drops_after: Strings
    end_of_life: str | None
    evidence: Evidence


class ComputeCapability(NamedTuple):
    """A CUDA compute capability: generation, first driver branch and features.

    Features are tensor_cores, tf32, bf16, fp8 and fp4. Machine code for the capability runs on the
    same major and a minor at least its own, except on `code_not_on`, and on `code_also_on` besides.
    `fp16_rate` is the ratio of fp16 to fp32 arithmetic outside tensor cores: 0 without fp16, None
    if it was not read.
    """

    cc: str
    arch: str
    first_driver: str | None
    features: Strings
    evidence: Evidence
    code_not_on: Strings = ()
    code_also_on: Strings = ()
    fp16_rate: float | None = None


class CudnnSupport(NamedTuple):
    """The lowest capability `cc_min` of cuDNN from release `first` on, for a CUDA major ("12")."""

    cuda: str
    first: str
    cc_min: str
    evidence: Evidence


class PtxFailure(NamedTuple):
    """Releases (a specifier) of a package whose PTX the driver cannot compile for a capability.

    `error` is the driver's error.
    """

    package: str
    cc: str
    releases: str
    error: str
    evidence: Evidence


class Card(NamedTuple):
    """An accelerator.

    `cc` is its CUDA compute capability ("8.9"), `memory_gb` its memory as the vendor counts it,
    `bandwidth_gb_s` in GB/s, `tflops` its dense peaks in TFLOP/s by format. `gcp`, `workbench`,
    `vertex` and `colab` are its names in these services ("" if they do not offer it). `status` on
    Google Cloud is offered, listed, reservation, retired (not for new machines), removed or ""
    (never offered). `host` is the platform of its machine if that is fixed; `unified` memory is
    shared with the host.
    """

    name: str
    cc: str
    memory_gb: float
    arch: str
    aliases: Strings
    evidence: Evidence
    bandwidth_gb_s: float | None = None
    tflops: Mapping[str, float] = {}
    tflops_source: str = ""
    gcp: str = ""
    workbench: str = ""
    vertex: str = ""
    colab: str = ""
    status: str = ""
    host: str = ""
    unified: bool = False
    lacks: Strings = ()


class UnsupportedAccelerator(NamedTuple):
    """A family of accelerators that are not NVIDIA cards.

    `pattern` is searched for in a name in lower case with its words joined by hyphens; `needs` is
    what PyTorch requires there.
    """

    family: str
    pattern: str
    needs: str
    evidence: Evidence


class TorchCompilePython(NamedTuple):
    """The first release of torch whose torch.compile runs on a Python ("3.12")."""

    python: str
    first: str
    evidence: Evidence


class MpsPrecision(NamedTuple):
    """The requirements of a precision on Apple silicon: the oldest torch and macOS ("" for any).

    Trainer requires torch `trainer_torch`, and an accelerate that is older than `refused_first` or
    at least `accelerate` ("" for no such bound).
    """

    precision: str
    torch: str
    macos: str
    evidence: Evidence
    trainer_torch: str = ""
    refused_first: str = ""
    accelerate: str = ""


class PythonVersion(NamedTuple):
    """A CPython minor version and the month after which it gets no more security fixes."""

    version: str
    end_of_life: str
    evidence: Evidence
