"""The rows of the fact tables about torch, CUDA and cards, as types: each carries where it comes
from, as of when, and how sure we are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from provision.diagnostics import Severity


class Evidence(NamedTuple):
    """Where a fact comes from, as of which day, and how sure we are: high, medium or low. What is
    low may warn, never fail.
    """

    source: str
    as_of: str
    confidence: str

    @property
    def is_sure(self) -> bool:
        """Whether a rule may call something an error on this fact alone."""
        return self.confidence != "low"

    def cap_severity(self, severity: Severity) -> Severity:
        """Return the gravest severity, up to `severity`, that a finding may have which rests on
        this fact.
        """
        return Severity.WARNING if severity is Severity.ERROR and not self.is_sure else severity


class TorchRelease(NamedTuple):
    """One release of torch: the Pythons (major.minor) that have a wheel, and the CUDA flavours it
    was built in.

    `builds` maps a flavour such as "cu128" to the confidence that it can be installed; `default`
    is the flavour that the public index serves for Linux x86_64.
    `cudnn`, `nccl` and `cuda_runtime` are the pins of that default build ("" for none). No
    torchaudio or torchvision: none was made for this release.
    """

    release: str
    released: str
    default: str
    builds: Mapping[str, str]
    python: str
    pythons: tuple[str, ...]
    pythons_aarch64: tuple[str, ...]
    glibc: str
    triton: str
    torchvision: tuple[str, ...]
    evidence: Evidence
    torchaudio: tuple[str, ...] = ()
    default_aarch64: str = "cpu"
    glibc_aarch64: str = ""
    cudnn: str = ""
    nccl: str = ""
    cuda_runtime: str = ""

    @property
    def flavours(self) -> tuple[str, ...]:
        """All build families, `cpu` first: the PyTorch index serves a CPU build of every release in
        the table.
        """
        return ("cpu", *self.builds)

    def pythons_on(self, platform: str) -> tuple[str, ...]:
        """Return the Pythons that have a wheel on a platform such as "linux-aarch64"; macOS and
        Windows are taken as Linux x86_64.
        """
        return self.pythons_aarch64 if platform == "linux-aarch64" else self.pythons

    def default_on(self, platform: str) -> str:
        """Return the flavour that the public index serves for a platform: CUDA on Linux (aarch64
        from 2.11 on), else "cpu".
        """
        return {"linux-x86_64": self.default, "linux-aarch64": self.default_aarch64}.get(
            platform, "cpu"
        )

    def glibc_on(self, platform: str) -> str | None:
        """Return the oldest C library ("2.28") that the wheels for a Linux platform run on; None
        where there is none to ask for.
        """
        if platform == "linux-aarch64":
            return self.glibc_aarch64 or self.glibc
        return self.glibc if platform == "linux-x86_64" else None


class TorchBuild(NamedTuple):
    """What one CUDA build of torch was compiled for: machine code for the capabilities in `sm`, PTX
    of capability `ptx` ("" for none).
    """

    release: str
    flavour: str
    platform: str
    sm: tuple[str, ...]
    evidence: Evidence
    ptx: str = ""


class CudaToolkit(NamedTuple):
    """A CUDA toolkit.

    Its compiler makes code for `capabilities` (empty: not read, between `cc_min` and `cc_max`)
    and takes gcc up to major `gcc_max`. Programs made with it run
    on drivers from `floor_linux` and `floor_windows` on; `driver_first` and `driver_bundled` are
    Linux drivers of its first and last update, None where
    unknown.
    """

    cuda: str
    capabilities: tuple[str, ...]
    cc_min: str
    cc_max: str
    gcc_max: int
    driver_first: str | None
    driver_bundled: str | None
    floor_linux: str
    floor_windows: str
    evidence: Evidence


class DriverBranch(NamedTuple):
    """A branch of the NVIDIA driver: the newest CUDA it brings, the GPU generations it is the last
    for, its end ("2028-08", "ended" or None).
    """

    branch: str
    cuda_max: str
    drops_after: tuple[str, ...]
    end_of_life: str | None
    evidence: Evidence


class ComputeCapability(NamedTuple):
    """A CUDA compute capability: generation, first driver branch, and features (tensor_cores, tf32,
    bf16, fp8, fp4).

    Machine code for it runs on the same major and a minor at least its own, except on
    `code_not_on`, and on `code_also_on` besides.
    `fp16_rate` is fp16 arithmetic for each fp32 one outside tensor cores: 0 for none, None where
    it was not read.
    """

    cc: str
    arch: str
    first_driver: str | None
    features: tuple[str, ...]
    evidence: Evidence
    code_not_on: tuple[str, ...] = ()
    code_also_on: tuple[str, ...] = ()
    fp16_rate: float | None = None


class CudnnSupport(NamedTuple):
    """From release `first` on, cuDNN for a CUDA major ("12") runs on capability `cc_min` and newer."""  # noqa: E501

    cuda: str
    first: str
    cc_min: str
    evidence: Evidence


class Card(NamedTuple):
    """An accelerator: CUDA compute capability such as "8.9", memory in GB as the vendor counts,
    bandwidth in GB/s, dense peaks in TFLOP/s by format.

    `gcp`, `workbench`, `vertex` and `colab` are its names there, "" where it is not offered;
    `status` on Google Cloud is offered, listed, reservation,
    retired (none for new machines), removed or "" (never there). `host` is the platform of its
    machine where that is fixed, `unified` memory is shared with it.
    """

    name: str
    cc: str
    memory_gb: float
    arch: str
    aliases: tuple[str, ...]
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
    lacks: tuple[str, ...] = ()


class CompileSupport(NamedTuple):
    """The first release of torch whose torch.compile runs on a Python ("3.12")."""

    python: str
    first: str
    evidence: Evidence


class MpsPrecision(NamedTuple):
    """What a precision needs on Apple silicon: the oldest torch, and the oldest macOS ("" for any).

    Trainer needs torch `trainer_torch`, and no accelerate from `refused_first` to before
    `accelerate` ("" for no such bound).
    """

    precision: str
    torch: str
    macos: str
    evidence: Evidence
    trainer_torch: str = ""
    refused_first: str = ""
    accelerate: str = ""


class TransformersReleases(NamedTuple):
    """A run of transformers releases, `first` to `last`, with the same needs.

    `accelerate` is the floor that Trainer enforces, `torch` the release below which torch is
    switched off at import; None where none is known.
    `floors` (at least) and `ceilings` (below) hold for packages that transformers checks itself
    when it uses them.
    """

    first: str
    last: str
    python: str
    accelerate: str | None
    torch: str | None
    declared: Mapping[str, str]
    evidence: Evidence
    floors: Mapping[str, str] = {}
    ceilings: Mapping[str, str] = {}


class VersionFloor(NamedTuple):
    """The lowest version that will do: `version` is enough for sure; below `certain` it is too old
    for sure, between the two nothing was read.
    """

    version: str
    certain: str | None
    evidence: Evidence


class PythonVersion(NamedTuple):
    """A CPython minor version and the month after which it gets no more security fixes."""

    version: str
    end_of_life: str
    evidence: Evidence


class ReplacedPackage(NamedTuple):
    """A package name that leads elsewhere: `kind` is stub (empty or refuses to install), other
    (another project), abandoned or hostile.

    It holds where each package of `beside` may be a release that its specifier admits.
    """

    name: str
    instead: str
    kind: str
    what: str
    evidence: Evidence
    beside: Mapping[str, str] = {}
