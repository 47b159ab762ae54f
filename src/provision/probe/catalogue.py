"""All stages and checks of a verification, as data; a check is added here, in its stage's OBSERVERS and in JUDGES."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .expectations import Expectations
from .values import Asked, Check, Need, Threshold, Tier

GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Stage:
    """A group of checks. Stages with one `process` share a process where no GPU is declared, because importing torch is most of the cost.

    When a process dies, the stages after the one that killed it get a new one. With a GPU every stage has its own process: one CUDA
    error spoils all that follows in it. `timeout_s` allows for a first run without bytecode.
    """

    name: str
    title: str
    timeout_s: float
    process: str


STAGES: tuple[Stage, ...] = (
    Stage("host", "host and environment", 30, "plain"),
    Stage("driver", "driver and cards", 60, "plain"),
    Stage("packages", "installed packages", 120, "plain"),
    Stage("torch", "torch build and numerics", 240, "warm"),
    Stage("loaders", "data loaders", 240, "warm"),
    Stage("training", "training run", 420, "warm"),
    # After the training run, so that whatever a direct package changes on import cannot change what was measured.
    Stage("imports", "imports of direct packages", 420, "warm"),
    Stage("resume", "resume in a fresh process", 300, "fresh"),
)

THREADS_AND_HUB = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "WANDB_DISABLED": "true",
    "WANDB_MODE": "disabled",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
}
"""Set for all but the plain process, which has to see the environment as the user's job will. One thread makes the tiny runs fast on a busy
machine; offline keeps a dead network from costing 23-47 s a call. All has to stand before the first import."""

SHM_FLOOR = Threshold(GIB, "bytes", "own choice: containers start with 64 MiB (docker run --shm-size), one batch per worker has to fit")
NOFILE_FLOOR = Threshold(4096, "files", "own choice: a limit of 256 breaks DataLoader workers while 1000 batches are kept")
RAM_SHARE = Threshold(0.95, "of the declared bytes", "own choice: MemTotal leaves out what the kernel reserves (Linux, filesystems/proc)")
FP32_ERROR = Threshold(2e-6, "relative Frobenius error", "fp32 measures 3e-7 for any K from 256 to 4096; tf32 would measure 2.9e-4")
BF16_ERROR = Threshold(4.5e-3, "relative Frobenius error", "rounding the output gives 1.66e-3, bf16 split-K reduction 4.0e-3")
TF32_ERROR = Threshold(1e-3, "relative Frobenius error", "tf32 measures 2.9e-4 against unrounded float64")
LEARNS = Threshold(0.5, "mean of the last 5 losses / mean of the first 5", "AdamW measures 0.15 here; SGD at AdamW's usual rate, which does not learn, 0.98")

SLOWED = Threshold(
    0, "reasons to slow down", "nvml.h, nvmlClocksEventReasons: bits 0x08, 0x20, 0x40 and 0x80; idle, application clocks and the power cap are no fault"
)
CARD_USED = Threshold(0.03, "of the card's memory", "own choice: what the driver itself keeps stays below it")

_CARD = (Need.GPU,)
_TORCH = (Need.TORCH,)
_GPU = (Need.TORCH, Need.GPU)
_RUN = (Need.TORCH, Need.TRAINING)
_OF_IMPORTS = ("package.*", "packages.shadowed", "packages.altered", "packages.unmet", "python.version", "env.LD_LIBRARY_PATH", "env.PYTHONPATH")

CHECKS: tuple[Check, ...] = (
    Check("H01", "host", "operating system", "host", ("host.platform", "os.id", "os.version"), Tier.INVENTORY),
    Check("H02", "host", "C library", "host", ("host.glibc", "os.version"), Tier.INVENTORY, required_by="glibc_min"),
    Check("H04", "host", "CPU share", "host", ("host.cpus", "host.cpu_affinity", "host.cpu_quota"), Tier.INVENTORY, required_by=""),
    Check("H05", "host", "memory", "host", ("host.ram_bytes", "host.cgroup_ram_bytes"), Tier.INVENTORY, required_by="requires.ram_bytes", threshold=RAM_SHARE),
    Check("H06", "host", "disk space", "host", ("disk.*",), Tier.INVENTORY, required_by="requires.disk_bytes"),
    Check("H07", "host", "shared memory", "host", ("host.shm_bytes",), Tier.INVENTORY, required_by="requires.shm_bytes", threshold=SHM_FLOOR),
    Check("H08", "host", "open files", "host", ("host.nofile",), Tier.INVENTORY, required_by="", threshold=NOFILE_FLOOR),
    Check("H10", "host", "locale and home", "host", ("locale.encoding", "user.home_writable"), Tier.INVENTORY, required_by=""),
    Check("W01", "paths", "declared paths", "host", ("path.*",), Tier.INVENTORY, required_by="paths"),
    Check("E01", "environment", "harmful variables", "host", ("env.*",), Tier.INVENTORY, required_by=""),
    Check("E02", "environment", "declared variables", "host", ("declared_env.*",), Tier.INVENTORY, required_by="env"),
    Check("Y01", "secrets", "declared secrets", "host", ("secret.*",), Tier.INVENTORY, required_by="secrets"),
    Check("D01", "device", "driver answers", "driver", ("driver.error", "driver.version", "nvml.count"), Tier.INVENTORY, needs=_CARD),
    Check("D02", "device", "driver version", "driver", ("driver.version",), Tier.INVENTORY, needs=_CARD, after=("D01",), required_by="requires.driver"),
    Check("D05", "device", "memory errors", "driver", ("nvml.uncorrected", "nvml.remap_*"), Tier.INVENTORY, needs=_CARD, after=("D01",)),
    Check("D06", "device", "clocks", "driver", ("nvml.reasons", "nvml.power_limit_mw"), Tier.INVENTORY, needs=_CARD, after=("D01",), threshold=SLOWED),
    Check("D08", "device", "card is free", "driver", ("nvml.used_bytes",), Tier.INVENTORY, needs=_CARD, after=("D01",), required_by="", threshold=CARD_USED),
    Check("D09", "device", "card as delivered", "driver", ("nvml.mig", "nvml.compute_mode"), Tier.INVENTORY, needs=_CARD, after=("D01",), required_by=""),
    Check("P01", "packages", "python", "packages", ("python.minor", "python.prefix_matches", "python.version"), Tier.INVENTORY),
    Check("P02", "packages", "locked packages", "packages", ("packages.digest", "package.*"), Tier.INVENTORY),
    Check("P03", "packages", "nothing else in the way", "packages", ("packages.shadowed", "packages.unlocked", "env.PYTHONPATH"), Tier.INVENTORY),
    Check("P04", "packages", "requirements of packages", "packages", ("packages.digest", "packages.unmet"), Tier.INVENTORY),
    Check("P06", "packages", "import", "imports", _OF_IMPORTS, each_direct=True),
    Check("P07", "packages", "files of packages", "packages", ("packages.altered", "packages.stray_pth", "packages.without_record"), Tier.INVENTORY),
    Check("T01", "torch", "torch build", "torch", ("torch.version", "torch.cuda", "package.torch", "packages.shadowed"), needs=_TORCH),
    Check(
        "T02",
        "torch",
        "device",
        "torch",
        ("torch.cuda", "driver.version", "gpu.count", "gpu.available", "env.CUDA_VISIBLE_DEVICES"),
        needs=_GPU,
        after=("T01",),
    ),
    Check("T03", "torch", "GPU architecture", "torch", ("gpu.compute_capability", "torch.arch_list", "torch.version"), needs=_GPU, after=("T01", "T02")),
    Check("D03", "device", "GPU model", "torch", ("gpu.name", "gpu.compute_capability"), needs=_GPU, after=("T01", "T02")),
    Check("D04", "device", "GPU memory", "torch", ("gpu.vram_bytes", "gpu.name"), needs=_GPU, after=("T01", "T02"), required_by="requires.vram_bytes"),
    Check(
        "N01",
        "numerics",
        "matrix products are right",
        "torch",
        ("torch.version", "torch.cpu_capability", "gpu.name", "numerics.fp32_error", "numerics.bf16_error"),
        needs=_TORCH,
        after=("T01",),
        threshold=FP32_ERROR,
    ),
    Check(
        "N02",
        "numerics",
        "fp32 is fp32",
        "torch",
        ("env.NVIDIA_TF32_OVERRIDE", "env.TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "numerics.fp32_error"),
        needs=_TORCH,
        after=("T01", "N01"),
        threshold=FP32_ERROR,
    ),
    Check("N06", "numerics", "same product twice", "torch", ("torch.version", "torch.cpu_capability", "gpu.name"), needs=_TORCH, after=("T01",)),
    Check(
        "L01",
        "loaders",
        "DataLoader, fork",
        "loaders",
        ("host.shm_bytes", "host.nofile", "torch.version"),
        needs=_TORCH,
        required_by="training.dataloader_workers",
    ),
    Check(
        "L02",
        "loaders",
        "DataLoader, spawn",
        "loaders",
        ("host.shm_bytes", "host.nofile", "torch.version"),
        needs=_TORCH,
        required_by="training.dataloader_workers",
    ),
    Check(
        "R01",
        "training",
        "imports and arguments",
        "training",
        ("train.unknown_arguments", "train.refused_arguments", "package.transformers", "package.accelerate", *_OF_IMPORTS),
        needs=_RUN,
    ),
    Check(
        "R02",
        "training",
        "learns",
        "training",
        ("package.torch", "package.transformers", "package.accelerate", "torch.cpu_capability", "train.loss_first", "train.loss_last"),
        needs=_RUN,
        after=("R01",),
        threshold=LEARNS,
    ),
    Check("R03", "training", "precision in effect", "training", ("train.dtype", "gpu.available", "gpu.name"), needs=_RUN, after=("R01", "R02")),
    Check("R06", "training", "checkpoint is complete", "training", ("train.checkpoint_missing", "disk.*"), needs=_RUN, after=("R01", "R02")),
    Check("R07", "training", "declared options in effect", "training", ("train.options", "package.transformers"), needs=_RUN, after=("R01", "R02")),
    Check(
        "R04",
        "training",
        "repeats exactly",
        "training",
        ("train.weights_sha", "train.repeat_sha", "gpu.name", "package.torch"),
        needs=_RUN,
        after=("R01", "R02"),
    ),
    Check(
        "R05",
        "training",
        "resumes exactly in a fresh process",
        "resume",
        ("train.weights_sha", "resume.weights_sha", "package.torch", "package.transformers", "package.accelerate", "gpu.name"),
        needs=_RUN,
        after=("R01", "R02", "R06"),
    ),
)


def asked(expected: Expectations, only: frozenset[str] = frozenset()) -> tuple[Asked, ...]:
    """The checks of this verification's tier in catalogue order. `only` names ids to keep; what they come after is kept with them."""
    kept = _closure(only)
    tiers = tuple(Tier)
    affordable = tiers[: tiers.index(expected.tier) + 1]
    chosen = [check for check in CHECKS if check.tier in affordable and (not only or check.id in kept)]
    return tuple(one for check in chosen for one in _instances(check, expected) if not _left_out(one, only))


def known_ids(expected: Expectations) -> frozenset[str]:
    """Every id that `only` may name."""
    return frozenset(check.id for check in CHECKS) | frozenset(one.id for one in asked(expected))


def processes(expected: Expectations) -> list[list[Stage]]:
    """The stages in the order they run, grouped by the process they share."""
    groups: list[list[Stage]] = []
    for stage in STAGES:
        shares = bool(groups) and groups[-1][-1].process == stage.process and (expected.gpu_type is None or stage.process == "plain")
        if shares:
            groups[-1].append(stage)
        else:
            groups.append([stage])
    return groups


def applies(check: Check, expected: Expectations) -> bool:
    """Whether the declared environment holds everything the check needs."""
    return all(expected.meets(need) for need in check.needs)


def _instances(check: Check, expected: Expectations) -> Iterator[Asked]:
    required = applies(check, expected) and (check.required_by == "always" or (check.required_by != "" and expected.declares(check.required_by)))
    if not check.each_direct:
        yield Asked(check, check.id, check.title, None, required)
        return
    for name in expected.direct:
        yield Asked(check, f"{check.id}:{name}", f"{check.title} {name}", name, required)


def _closure(only: frozenset[str]) -> frozenset[str]:
    kept = {name.split(":")[0] for name in only}
    for check in reversed(CHECKS):
        if check.id in kept:
            kept.update(check.after)
    return frozenset(kept)


def _left_out(one: Asked, only: frozenset[str]) -> bool:
    return one.subject is not None and bool(only) and one.id not in only and one.check.id not in only
