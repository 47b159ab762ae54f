"""Every check can pass and can fail, told from readings alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from provision.agent.probe.catalogue import select_checks
from provision.agent.probe.checks import CHECKS
from provision.agent.probe.expectations import Expectations, parse_expectations
from provision.agent.probe.judging import judge
from provision.agent.probe.judging.cards import is_declared_gpu
from provision.agent.probe.judging.torch_build import has_code_for
from provision.agent.probe.model import Judgement, ObservationLog, Status, Tier
from provision.agent.probe.observing.loaders import EXPECTED_SUM
from provision.views.formatting import format_json_value
from tests.agent.probe.rows import COMPILED, NAMELESS, OF_DEVICES, OF_JOBS, Row
from tests.agent.probe.rows_frameworks import OF_FRAMEWORKS
from tests.agent.probe.rows_replicas import JOB, OF_REPLICAS
from tests.python_values import python_values

GIB = 1024**3
TORCH = [{"name": "torch", "version": "2.13.0+cpu"}]
HF = [*TORCH, {"name": "transformers", "version": "5.23.0"}]
GPU: dict[str, Any] = {"packages": TORCH, "gpu": {"type": "L4", "count": 1}}
A100 = {**GPU, "gpu": {"type": "A100-80GB", "count": 1}}
OLD_GPU = {**GPU, "gpu": {"type": "T4", "count": 1}, "requires__compute_capability": ">=8.0"}
FROM_PYPI = {"packages": [{"name": "torch", "version": "2.13.0"}]}
NEWER_CUDA = {**GPU, "driver_min": "580", "flavour": "cu130"}
NOBODY = {
    "several.sums_wrong": 0,
    "several.sums_ranks": 0,
    "several.sums_steps": [None, None],
    "several.sums_wrong_ranks": [],
}
BUSY = "AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable"
NO_GPU_SEEN = {"gpu.available": False, "gpu.count": 0}
GOOD_PRODUCTS = {
    "numerics.device": "cpu",
    "numerics.fp32_error": 3e-7,
    "numerics.fp32_outside": 0,
    "numerics.bf16_error": 1.7e-3,
    "numerics.bf16_outside": 0,
}
TF32_PRODUCTS = {
    **GOOD_PRODUCTS,
    "numerics.device": "cuda",
    "numerics.fp32_error": 2.9e-4,
    "numerics.fp32_outside": 9,
    "numerics.fp16_error": 2.1e-4,
    "numerics.fp16_outside": 0,
    "numerics.fp32_large_error": 2.9e-4,
    "numerics.fp32_large_outside": 900,
    "numerics.bf16_large_error": 1.7e-3,
    "numerics.bf16_large_outside": 0,
    "numerics.fp16_large_error": 2.1e-4,
    "numerics.fp16_large_outside": 0,
}
SYSTEM = {"os.id": "debian", "os.version": "12"}
SHM = {
    "host.shm_bytes": 2 * GIB,
    "host.shm_free_bytes": 2 * GIB,
    "host.shm_state": "writable",
    "_shm.applies": True,
}
WRITABLE = {"path.data.state": "writable"}
LIMITS = dict.fromkeys(
    (
        "host.pids",
        "host.nproc",
        "host.address_space_bytes",
        "host.file_size_bytes",
        "host.cpu_time_s",
    )
)
FOLDERS = {"folder.tmp": "writable", "folder.tmp_runs_programs": True, "folder.hf_cache": "can be made", "folder.working": "writable",
           "_folder.paths": {"tmp": "TMPDIR=/gone", "hf_cache": "/c", "working": "/w"}}  # fmt: skip
CLEAN = {
    "packages.shadowed": [],
    "packages.elsewhere": [],
    "packages.duplicates": [],
    "packages.unlocked": [],
}
FILES: dict[str, Any] = {
    "packages.files": 9,
    "packages.altered": [],
    "packages.without_record": [],
    "packages.never_fitted": [],
    "packages.stray_pth": [],
    "packages.stray": [],
    "_packages.altered_count": 0,
    "_packages.hashed": 0,
    "_packages.own": True,
}
IMPORTED: dict[str, Any] = {
    "_imported.torch": ["torch"],
    "_imported_elsewhere.torch": [],
    "_imported_live.torch": None,
}
ALTERED = {
    "packages.altered": [f"a: a/{n}.py is missing" for n in range(20)],
    "_packages.altered_count": 8000,
}
OURS = {
    "python.minor": "3.11",
    "python.version": "3.11.7",
    "python.prefix_matches": True,
    "_python.prefix": "/env",
    "_python.executable": "/env/bin/python",
}
LEARNED = {"train.loss_first": 4.5, "train.loss_last": 0.7, "train.steps": 40, "train.still": []}
RESUMED = {
    "train.weights_sha": "aa",
    "resume.weights_sha": "aa",
    "resume.steps": 40,
    "resume.made": 20,
}
ALONE = {
    "train.device": "cpu",
    "train.n_gpu": 0,
    "train.parallel_mode": "not_parallel",
    "train.wrapper": "",
}
ON_CUDA = {
    "train.device": "cuda",
    "train.n_gpu": 1,
    "train.parallel_mode": "not_parallel",
    "train.wrapper": "",
}
UNSAID = {
    "model": None,
    "batch_size": None,
    "sequence_length": None,
    "torch_compile": False,
    "method": "full",
    "strategy": "none",
    "launcher": "auto",
}
TRAINING = {
    "framework": "hf-trainer",
    "precision": "fp32",
    "dataloader_workers": 0,
    "gradient_checkpointing": False,
    "optimizer": "sgd",
    "arguments": {},
}
LORA = {"packages": HF, "training": {**TRAINING, **UNSAID, "method": "lora"}}
ADAPTED = {
    "train.adapter_loss": [4.7, 4.2],
    "train.adapter_parameters": 9,
    "train.adapter_base_kept": True,
    "train.adapter_reloads": True,
}
DDP: dict[str, Any] = {"packages": HF, "training": {**TRAINING, **UNSAID, "strategy": "ddp"}}
EIGHT_BITS: dict[str, Any] = {
    "packages": HF,
    "training": {**TRAINING, **UNSAID, "strategy": "ddp", "optimizer": "adamw_bnb_8bit"},
}
TWO_GPUS = {"gpu": {"type": "L4", "count": 2}}
FSDP: dict[str, Any] = {
    "packages": HF,
    **TWO_GPUS,
    "training": {**TRAINING, **UNSAID, "strategy": "fsdp"},
}
ZERO: dict[str, Any] = {
    "packages": HF,
    **TWO_GPUS,
    "training": {**TRAINING, **UNSAID, "strategy": "deepspeed-zero3"},
}
SPREAD = {
    "launch.by": "torchrun", "launch.ranks": 2, "_launch.world": [2], "launch.backend": "gloo", "launch.wrapper": "DistributedDataParallel, Joinable", "launch.parallel_mode": "distributed",
    "launch.devices": ["cpu", "cpu"], "launch.weights_agree": True, "launch.loss": [4.5, 0.7],
    "launch.weights_error": 4e-7,
}  # fmt: skip
ON_TWO = {**SPREAD, "launch.backend": "cuda:nccl", "launch.devices": ["cuda:0", "cuda:1"]}
BUILT: dict[str, Any] = {"train.unknown_arguments": [], "train.refused_arguments": None}
FREE = {
    "disk.environment.free_bytes": 90 * GIB,
    "disk.tmp.free_bytes": 90 * GIB,
    "disk.hf_cache.free_bytes": 90 * GIB,
}
PACKED = {**FREE, "disk.environment.free_bytes": 0, "disk.environment.free_files": 0}
CARD = {
    "driver.error": None, "driver.version": "580.82.07", "driver.cuda": "13.0", "nvml.count": 1, "nvml.count_all": 1, "nvml.names": ["NVIDIA L4"],
    "nvml.ecc": [True], "nvml.uncorrected": [0], "nvml.remap_pending": [False], "nvml.remap_failed": [False], "nvml.retired_pending": [None],
    "nvml.reasons": [1],
    "nvml.used_bytes": [GIB // 4], "nvml.total_bytes": [24 * GIB], "nvml.recovery": [0], "nvml.fabric": [None], "nvml.xids": [],
    "nvml.mig": [False], "nvml.compute_mode": [0], "nvml.power_limit_mw": [72000], "nvml.power_default_mw": [72000],
    "nvml.pci": ["10de:27b8"], "gpu.name": "NVIDIA L4", "gpu.compute_capability": "8.9",
    "dcgm.level": 1, "dcgm.failed": [], "dcgm.passed": 9, "dcgm.error": None,
}  # fmt: skip
UNTOLD_ROWS: dict[str, Any] = {"nvml.remap_pending": [None], "nvml.remap_failed": [None]}
BESIDE_T400 = {**CARD, "nvml.count_all": 2, "nvml.told_apart": False, "gpu.name": "NVIDIA L4 + NVIDIA T400 4GB", "nvml.pci": ["10de:1fb2", "10de:27b8"],
               "gpu.vram_bytes": 4 * GIB, "nvml.mig": [None, None]}  # fmt: skip
SPLIT = {**CARD, "nvml.mig": [True], "gpu.vram_bytes": 40960 * 2**20}
SLICE = {**SPLIT, "memory.total_bytes": 4864 * 2**20}
CLOCK: dict[str, Any] = {
    "clock.behind": False,
    "_clock.ahead_s": -5.0,
    "_clock.file": "/env/pyvenv.cfg",
}
NOWHERE = dict.fromkeys(("host.place", "host.container", "host.machine"))
HUB: dict[str, Any] = {
    "net.hub": "hub.example",
    "net.reached": "answer",
    "net.status": 200,
    "net.problem": None,
    "net.proxy": False,
}
LIBRARIES: dict[str, Any] = {"libraries.outside": [], "libraries.openmp": ["libgomp.so.1"], "_libraries.count": 3,
                             "_libraries.variables": {"LD_PRELOAD": "/x.so"}, "_libraries.imported": True}  # fmt: skip
FACTS = {"memory_bytes": 24 * GIB, "bandwidth_gb_s": 300, "tflops": {}, "source": "data sheet"}
OF_MODEL: dict[str, Any] = {
    "packages": HF,
    "tier": "deep",
    "estimate_bytes": GIB,
    "levers": [{"change": {"gradient_checkpointing": True}, "saves_bytes": GIB // 2}],
    "training__model": {"parameters": 10**8, "hidden_size": 768, "layers": 8},
    "training__batch_size": 4,
    "training__sequence_length": 128,
    "training__method": "full",
    "training__torch_compile": False,
    "training__strategy": "none",
    "training__launcher": "auto",
}
REHEARSED: dict[str, Any] = {
    "rehearsal.why": None, "rehearsal.out_of_memory": None, "rehearsal.model": "8 layers of 768", "rehearsal.device": "cuda",
    "rehearsal.parameters": 10**8, "rehearsal.steps": 2, "rehearsal.finite": True, "rehearsal.step_s": 1.0,
    "rehearsal.logits_bytes": 0, "rehearsal.peak_bytes": GIB, "rehearsal.memory_bytes": 2 * GIB,
}  # fmt: skip
PACED = {
    "pace.tokens_per_s": 41234.6,
    "pace.precision": "bf16",
    "pace.parameters": 10**8,
    "pace.finite": True,
}
RAN_OUT = {
    **REHEARSED,
    "rehearsal.out_of_memory": "CUDA out of memory",
    "rehearsal.parameters": None,
    "rehearsal.steps": 0,
    "rehearsal.peak_bytes": 2 * GIB,
}
REHEARSALS = [
    Row(
        "S01",
        "pass",
        REHEARSED,
        OF_MODEL,
        "2 training steps of a model with 100 million parameters",
    ),
    Row(
        "S01",
        "fail",
        {**REHEARSED, "rehearsal.parameters": 2 * 10**8},
        OF_MODEL,
        "200 million parameters, but 100 million are declared",
    ),
    Row("S01", "fail", {**REHEARSED, "rehearsal.steps": 1}, OF_MODEL, "1 of 2 steps"),
    Row(
        "S01",
        "fail",
        {**REHEARSED, "rehearsal.finite": False},
        OF_MODEL,
        "a loss is NaN or infinite",
    ),
    Row("S01", "fail", RAN_OUT, OF_MODEL, "ran out of memory at 2 GiB"),
    Row("S01", "unknown", {"rehearsal.why": "it takes about 109.1 GiB"}, OF_MODEL, "109.1 GiB"),
    Row("S01", "skip", {"rehearsal.why": "no model"}, {**OF_MODEL, "training__model": None}),
    Row("S02", "pass", REHEARSED, OF_MODEL),
    Row(
        "S02",
        "pass",
        {**REHEARSED, "rehearsal.peak_bytes": 2 * GIB, "rehearsal.logits_bytes": GIB},
        OF_MODEL,
        "logits that it does not include",
    ),
    Row(
        "S02",
        "warn",
        {**REHEARSED, "rehearsal.peak_bytes": 2 * GIB},
        OF_MODEL,
        "two training steps used 2 GiB; the estimate is 1 GiB",
    ),
    Row("S02", "warn", {**REHEARSED, "rehearsal.peak_bytes": GIB // 4}, OF_MODEL, "used 256 MiB"),
    Row("S02", "unknown", REHEARSED, {**OF_MODEL, "estimate_bytes": None}, "no estimate"),
    Row("S02", "skip", RAN_OUT, OF_MODEL),
    Row(
        "R09",
        "pass",
        PACED,
        {**OF_MODEL, **GPU},
        "41,235 tokens per second with 100 million random parameters in bf16",
    ),
    Row(
        "R09",
        "warn",
        {**PACED, "pace.finite": False},
        {**OF_MODEL, **GPU},
        "a loss is NaN or infinite",
    ),
    Row("R09", "skip", {"pace.tokens_per_s": None}, {**OF_MODEL, **GPU}, "no card"),
    Row("S03", "pass", REHEARSED, OF_MODEL, "use 1 GiB of the card's 2 GiB"),
    Row(
        "S03",
        "fail",
        {**REHEARSED, "rehearsal.peak_bytes": 2 * GIB - 1},
        OF_MODEL,
        "which leaves too little",
    ),
    Row("S03", "fail", RAN_OUT, OF_MODEL, "does not fit"),
    Row("S03", "skip", {"rehearsal.why": "too large"}, OF_MODEL),
    Row("S03", "unknown", {**REHEARSED, "rehearsal.peak_bytes": None}, OF_MODEL),
]
ROWS = [
    Row("H01", "pass", {**SYSTEM, "host.platform": "linux-x86_64"}),
    Row("H01", "fail", {**SYSTEM, "host.platform": "linux-aarch64"}, says="the lock is for linux-x86_64"),
    Row("H02", "pass", {"host.glibc": "2.36"}, {"glibc_min": "2.28"}),
    Row("H02", "fail", {"host.glibc": "2.27"}, {"glibc_min": "2.28"}, "2.27 is older than 2.28"),
    Row("H02", "fail", {"host.glibc": None}, {"glibc_min": "2.28"}, "but this system has no glibc"),
    Row("H02", "pass", {"host.glibc": "2.27"}, says="glibc 2.27; no locked wheel requires a minimum version"),
    Row("H02", "skip", {"host.glibc": None}),
    Row("H04", "pass", {"host.cpus": 4}, {"training__dataloader_workers": 4}),
    Row("H04", "warn", {"host.cpus": 2, "host.cpu_quota": 2.0}, {"training__dataloader_workers": 8}, "8 DataLoader workers"),
    Row("H05", "pass", {"host.ram_bytes": 16 * GIB - GIB // 2, "host.cgroup_ram_bytes": None}, {"requires__ram_bytes": 16 * GIB}),
    Row("H05", "fail", {"host.ram_bytes": 13 * GIB, "host.cgroup_ram_bytes": None}, {"requires__ram_bytes": 16 * GIB}, "the machine has only 13 GiB"),
    Row("H05", "fail", {"host.ram_bytes": 64 * GIB, "host.cgroup_ram_bytes": 12 * GIB}, {"requires__ram_bytes": 16 * GIB}, "the container can use only 12 GiB"),
    Row("H05", "skip", {"host.ram_bytes": GIB, "host.cgroup_ram_bytes": None}),
    Row("H06", "pass", {**FREE}, {"requires__disk_bytes": 50 * GIB}),
    Row("H06", "fail", {**FREE, "disk.environment.free_bytes": 9 * GIB}, {"requires__disk_bytes": 50 * GIB}, "environment (9 GiB)"),
    Row("H06", "fail", {**FREE, "disk.path.data.free_bytes": 9 * GIB}, {"requires__disk_bytes": 50 * GIB, "paths": {"data": "/d"}}, "path.data (9 GiB)"),
    Row("H06", "warn", {**FREE, "disk.tmp.free_bytes": 9 * GIB}, {"requires__disk_bytes": 50 * GIB}, "tmp (9 GiB)"),
    Row("H06", "unknown", {**FREE, "disk.environment.free_bytes": None}, {"requires__disk_bytes": 50 * GIB}),
    Row("H06", "skip", {**FREE}),
    Row("H06", "skip", {**FREE, "disk.tmp.free_files": 9}),
    Row("H06", "pass", {**PACKED, "disk.path.data.free_bytes": 500 * GIB}, {"requires__disk_bytes": 50 * GIB, "paths": {"data": "/d"}}),
    Row("H06", "fail", PACKED, {"requires__disk_bytes": 50 * GIB}, "no more files can be created in environment"),
    Row("H06", "pass", {"disk.working.free_bytes": 90 * GIB, "disk.environment.read_only": True}, {"requires__disk_bytes": 50 * GIB}),
    Row("H06", "warn", {**FREE, "disk.tmp.free_files": 0}, says="no more files can be created in tmp"),
    Row("H06", "fail", {**FREE, "disk.tmp.free_files": 0}, {"requires__disk_bytes": GIB}, "no more files can be created in tmp"),
    Row("H06", "warn", {**FREE, "disk.hf_cache.free_bytes": GIB // 4}, says="low disk space: hf_cache 256 MiB"),
    Row("H06", "warn", {**FREE, "disk.working.free_bytes": GIB}, OF_MODEL, "one checkpoint of the declared model takes 1.118 GiB"),
    Row("H06", "skip", {**FREE, "disk.working.free_bytes": GIB, "disk.path.output.free_bytes": 2 * GIB}, OF_MODEL),
    Row("H07", "pass", {"host.shm_bytes": 2 * GIB, "_shm.applies": True}, {"requires__shm_bytes": GIB}),
    Row("H07", "fail", {"host.shm_bytes": 64 * 1024**2, "_shm.applies": True}, {"requires__shm_bytes": GIB}, "/dev/shm has only 64 MiB"),
    Row("H07", "warn", {"host.shm_bytes": 64 * 1024**2, "_shm.applies": True}, {"training__dataloader_workers": 2}, "recommended"),
    Row("H07", "fail", {**SHM, "host.shm_free_bytes": GIB // 4}, {"requires__shm_bytes": GIB}, "/dev/shm has 2 GiB, of which only 256 MiB is free"),
    Row("H07", "warn", {**SHM, "host.shm_state": "not writable: Permission denied"}, {"training__dataloader_workers": 2}, "is not writable: Permission denied"),
    Row("H07", "fail", {**SHM, "host.shm_bytes": 0, "host.shm_state": "absent"}, {"requires__shm_bytes": GIB}, "/dev/shm is absent"),
    Row("H07", "pass", {**SHM, "host.shm_free_bytes": GIB}, {"training__dataloader_workers": 2}),
    Row("H07", "skip", {"host.shm_bytes": 0, "_shm.applies": True}),
    Row("H07", "skip", {"host.shm_bytes": None, "_shm.applies": False}, {"requires__shm_bytes": GIB}),
    Row("H08", "pass", {"host.nofile": 65536}, {"training__dataloader_workers": 2}),
    Row("H08", "pass", {"host.nofile": -1}, {"training__dataloader_workers": 2}),
    Row("H08", "warn", {"host.nofile": 1024}, {"training__dataloader_workers": 2}, "1024 open files"),
    Row("H08", "skip", {"host.nofile": 256}),
    Row("H12", "pass", LIMITS),
    Row("H12", "pass", {**LIMITS, "host.pids": 9000}),
    Row("H12", "warn", {**LIMITS, "host.pids": 100}, says="100 processes and threads"),
    Row("H12", "warn", {**LIMITS, "host.nproc": 64, "host.pids": 9000}, says="64 processes and threads"),
    Row("H12", "warn", {**LIMITS, "host.address_space_bytes": 8 * GIB}, says="8 GiB of address space (ulimit -v)"),
    Row("H12", "warn", {**LIMITS, "host.file_size_bytes": GIB}, says="files of 1 GiB (ulimit -f)"),
    Row("H12", "warn", {**LIMITS, "host.cpu_time_s": 600}, says="600 s of CPU"),
    Row("H10", "pass", {"locale.encoding": "utf-8", "user.home_writable": True}),
    Row("H10", "warn", {"locale.encoding": "ansi_x3.4-1968", "user.home_writable": True}, says="ansi"),
    Row("H10", "warn", {"locale.encoding": "UTF_8".lower(), "user.home_writable": False}, says="home folder"),
    Row("H03", "pass", {"host.kernel": "6.1.0-49-cloud-amd64", "host.kernel_kind": "linux"}),
    Row("H03", "pass", {"host.kernel": "5.10.0", "host.kernel_kind": "linux"}),
    Row("H03", "warn", {"host.kernel": "5.4.0-1093-gcp", "host.kernel_kind": "linux"}, says="5.4.0-1093-gcp is older than 5.5"),
    Row("H03", "warn", {"host.kernel": "4.4.0", "host.kernel_kind": "gvisor"}, says="the kernel is gVisor"),
    Row("H03", "unknown", {"host.kernel": "next", "host.kernel_kind": "linux"}),
    Row("H03", "skip", {"host.kernel": "24.1.0", "host.kernel_kind": "darwin"}),
    Row("H09", "pass", CLOCK, says="not behind the files"),
    Row("H09", "pass", {**CLOCK, "net.skew_s": -12}, says="agrees with the Hub's"),
    Row("H09", "fail", {**CLOCK, "clock.behind": True, "_clock.ahead_s": 86400.0}, says="86400 s behind the modification time of /env/pyvenv.cfg"),
    Row("H09", "fail", {**CLOCK, "net.skew_s": -4000}, says="4000 s behind the Hub's"),
    Row("H09", "unknown", {**CLOCK, "_clock.ahead_s": None}),
    Row("H11", "pass", NOWHERE, says="no sign of a container or a virtual machine"),
    Row("H11", "pass", {**NOWHERE, "host.place": "colab", "host.container": "docker"}, {"target__kind": "colab"}, "colab, in a container (docker)"),
    Row("H11", "pass", {**NOWHERE, "host.machine": "Google Compute Engine"}, {"target__kind": "workbench"}),
    Row("H11", "pass", NOWHERE, {"target__kind": "workbench", "simulated": ["the instance"]}),
    Row("H11", "warn", {**NOWHERE, "host.machine": "KVM"}, {"target__kind": "workbench"}, "kind is workbench, but this machine does not look like a workbench machine: KVM"),
    Row("H11", "warn", {**NOWHERE, "host.place": "kaggle"}, {"target__kind": "colab"}, "kaggle"),
    Row("W02", "pass", {"login.differs": [], "_login.values": {}}),
    Row("W02", "warn", {"login.differs": ["A"], "_login.values": {"A": "2"}}, {"env": {"A": "1"}}, "A='2' (declared: '1')"),
    Row("W02", "warn", {"login.differs": ["PYTHONPATH"], "_login.values": {}}, says="PYTHONPATH: modules outside"),
    Row("W02", "unknown", {"login.differs": None}),
    Row("E03", "pass", {"hub.offline_by": []}, {"packages": HF}),
    Row("E03", "pass", {"hub.offline_by": ["HF_HUB_OFFLINE"]}, {"packages": HF, "env": {"HF_HUB_OFFLINE": "1"}}, "as declared"),
    Row("E03", "warn", {"hub.offline_by": ["HF_HUB_OFFLINE"]}, {"packages": HF}, "HF_HUB_OFFLINE keeps"),
    Row("E03", "skip", {"hub.offline_by": ["HF_HUB_OFFLINE"]}),
    Row("X01", "pass", HUB, says="can be reached, and its certificate is valid"),
    Row("X01", "warn", {**HUB, "net.reached": "name", "net.problem": "the name cannot be resolved: x"}, says="the name cannot be resolved"),
    Row("X01", "warn", {**HUB, "net.reached": "tls", "net.problem": "y", "net.proxy": True}, says="cannot be reached through the proxy: y"),
    Row("X01", "unknown", {**HUB, "net.reached": "", "net.problem": "not installed"}),
    Row("X01", "skip", {**HUB, "net.reached": ""}),
    Row("X02", "pass", HUB, says="status 200"),
    Row("X02", "warn", {**HUB, "net.status": 503}, says="status 503"),
    Row("X02", "warn", {**HUB, "net.status": None, "net.problem": "no response within 3 s"}, says="no response (no response within"),
    Row("X02", "skip", {**HUB, "net.reached": "tls"}),
    Row("P08", "pass", LIBRARIES, {"packages": TORCH}, "3 torch, GPU and threading libraries"),
    Row("P08", "fail", {**LIBRARIES, "libraries.outside": ["/usr/lib/libcudnn.so.9"]}, {"packages": TORCH}, "outside the environment: /usr/lib/libcudnn.so.9"),
    Row("P08", "warn", {**LIBRARIES, "libraries.outside": ["/usr/lib/libnccl.so.2"]}, {"packages": TORCH, "shared": True}, "libnccl.so.2"),
    Row("P08", "warn", {**LIBRARIES, "libraries.openmp": ["libgomp.so.1", "libiomp5.so"]}, {"packages": TORCH}, "more than one OpenMP runtime"),
    Row("P08", "fail", {**LIBRARIES, "libraries.outside": ["/x/libgomp.so.1"], "_libraries.imported": False}, {"packages": TORCH}, "/x/libgomp.so.1"),
    Row("P08", "unknown", {**LIBRARIES, "_libraries.imported": False}, {"packages": TORCH}, "torch cannot be imported (see T01)"),
    Row("P08", "skip", {**LIBRARIES, "libraries.outside": None}, {"packages": TORCH}),
    Row("W01", "pass", {"path.data.state": "writable"}, {"paths": {"data": "/d"}}),
    Row("W01", "pass", {**WRITABLE, "path.data.filesystem": "ext4"}, {"paths": {"data": "/d"}}, "every declared path is writable"),
    Row("W01", "pass", {**WRITABLE, "path.data.filesystem": "fuse.gcsfuse"}, {"paths": {"data": "/d"}}, "network file systems, slow for many small files: data on fuse.gcsfuse"),
    Row("W01", "fail", {"path.data.state": "absent"}, {"paths": {"data": "/d"}}, "data (/d) is absent"),
    Row("W01", "fail", {"path.data.state": "absent"}, {"paths": {"data": "/content/drive/MyDrive/d"}}, "data (/content/drive/MyDrive/d) is absent"),
    Row("W01", "fail", {**WRITABLE, "path.data.filesystem": "fuse.drive", "disk.path.data.free_bytes": 0}, {"paths": {"data": "/d"}}, "data: Google Drive is full"),
    Row("W01", "pass", {**WRITABLE, "path.data.filesystem": "fuse.drive", "disk.path.data.free_bytes": 1}, {"paths": {"data": "/d"}}, "data on fuse.drive"),
    Row("W01", "pass", {**WRITABLE, "path.data.filesystem": "ext4", "disk.path.data.free_bytes": 0}, {"paths": {"data": "/d"}}),
    Row("W01", "fail", {"path.data.state": "not writable: Read-only file system"}, {"paths": {"data": "/d"}}, "Read-only"),
    Row("W03", "pass", FOLDERS),
    Row("W03", "pass", {**FOLDERS, "folder.tmp_runs_programs": False}),
    Row("W03", "warn", {**FOLDERS, "folder.tmp": "absent"}, says="the temporary folder (TMPDIR=/gone) is absent"),
    Row("W03", "warn", {**FOLDERS, "folder.hf_cache": "not writable: Permission denied"}, says="the Hugging Face cache (/c) is not writable"),
    Row("W03", "warn", {**FOLDERS, "folder.working": "absent"}, says="the working folder (/w) is absent"),
    Row("W03", "pass", {**FOLDERS, "folder.working": "absent"}, {"target__kind": "workbench"}),
    Row("W03", "warn", {**FOLDERS, "folder.tmp_runs_programs": False}, COMPILED, "is mounted noexec"),
    Row("E01", "pass", {"os.id": "debian", "env.CUDA_VISIBLE_DEVICES": "0"}),
    Row("E01", "pass", {"os.id": "debian"}),
    Row("E01", "warn", {"env.CUDA_LAUNCH_BLOCKING": "set"}, says="CUDA_LAUNCH_BLOCKING: the program waits"),
    Row("E01", "warn", {"env.LD_PRELOAD": "/x.so"}, says="LD_PRELOAD=/x.so: loads"),
    Row("W01", "fail", {"path.data.state": "not reachable: Permission denied"}, {"paths": {"data": "/d"}}, "data (/d) is not reachable: Permission denied"),
    Row("E02", "pass", {"declared_env.A": "1"}, {"env": {"A": "1"}}),
    Row("E02", "fail", {"declared_env.A": "2"}, {"env": {"A": "1"}}, "A is '2', but '1' is declared"),
    Row("E02", "fail", {"declared_env.A": None}, {"env": {"A": "1"}}, "A is not set"),
    Row("Y01", "pass", {"secret.T": "set"}, {"secrets": ["T"]}),
    Row("Y01", "fail", {"secret.T": "unset"}, {"secrets": ["T"]}, "not set: T"),
    Row("Y01", "fail", {"secret.T": "blank"}, {"secrets": ["T"]}, "not set: T (it is blank)"),
    Row("Y01", "warn", {"secret.T": "with white space around it"}, {"secrets": ["T"]}, "T begins or ends with white space or a line break"),
    Row("Y01", "warn", {"secret.T": "short"}, {"secrets": ["T"]}, "T is too short to be a token"),
    Row("Y02", "skip", {"credentials.files": {}}),
    Row("Y02", "pass", {"credentials.files": {"Kaggle": "only the owner"}}),
    Row("Y02", "warn", {"credentials.files": {"Kaggle": "others (mode 0644)"}}, says="Kaggle: the file can be read by others (mode 0644)"),
    Row("Y02", "warn", {"credentials.files": {"Google Cloud": "nobody: No such file or directory"}}, says="cannot be read (No such file or directory)"),
    Row("P01", "pass", OURS),
    Row("P01", "fail", {**OURS, "python.minor": "3.12", "python.version": "3.12.1"}, says="the lock is for 3.11"),
    Row("P01", "fail", {**OURS, "python.prefix_matches": False, "_python.executable": "/x/python"}, says="instead of the environment's Python"),
    Row("P01", "fail", {**OURS, "python.prefix_matches": False, "_python.prefix": "/usr"}, says="uses the packages in /usr instead of those in its own environment"),
    Row("P01", "fail", {**OURS, "python.implementation": "pypy"}, says="pypy is running, but the lock is for CPython"),
    Row("P01", "pass", {**OURS, "python.made_with": "3.11.7"}),
    Row("P01", "warn", {**OURS, "python.made_with": "3.11.2"}, says="Python 3.11.7 is running in an environment that was created with Python 3.11.2"),
    Row("P02", "pass", {"_packages.installed": {"torch": "2.13.0+cpu"}}, {"packages": TORCH}),
    Row("P02", "fail", {"_packages.installed": {"torch": "2.13.0+cu130"}}, {"packages": TORCH}, "torch 2.13.0+cu130, locked 2.13.0+cpu"),
    Row("P02", "fail", {"_packages.installed": {}}, {"packages": TORCH}, "torch is not installed"),
    Row("P02", "fail", {"_packages.installed": {}, "_packages.damaged": {"torch": "torch-2.13.0.dist-info"}}, {"packages": TORCH}, "torch has no readable METADATA"),
    Row("P03", "pass", CLEAN),
    Row("P03", "fail", {**CLEAN, "packages.shadowed": ["numpy from /x/numpy.py"]}, says="numpy from /x"),
    Row("P03", "fail", {**CLEAN, "packages.elsewhere": ["numpy"]}, says="outside the environment: numpy"),
    Row("P03", "warn", {**CLEAN, "packages.hidden_by_working_folder": ["datasets"]}, says="instead of installed modules: datasets"),
    Row("P03", "warn", {**CLEAN, "packages.duplicates": ["numpy"]}, says="more than once"),
    Row("P03", "warn", {**CLEAN, "packages.unlocked": ["six 1.17"]}, says="six 1.17"),
    Row("P04", "pass", {"packages.unmet": [], "packages.unread": []}),
    Row("P04", "fail", {"packages.unmet": ["a 1 needs b>=2, installed is 1"], "packages.unread": []}, says="needs b>=2"),
    Row("P04", "unknown", {"packages.unmet": [], "packages.unread": ["a: not a requirement"]}),
    *REHEARSALS,
    Row("P06", "pass", IMPORTED, {"direct": ["torch"]}),
    Row("P06", "fail", {**IMPORTED, "_imported_elsewhere.torch": ["/home/me/torch.py"]}, {"direct": ["torch"]}, "torch is imported from /home/me/torch.py"),
    Row("P06", "warn", {**IMPORTED, "_imported_live.torch": ["2.12.0", "2.13.0"]}, {"direct": ["torch"]}, "torch reports version 2.12.0 when"),
    Row("P06", "skip", {**IMPORTED, "_imported.torch": []}, {"direct": ["torch"]}),
    Row("P07", "pass", FILES, says="9 files of the locked packages match the size in"),
    Row("P07", "pass", {**FILES, "_packages.hashed": 9}, says="match the size and sha256 in"),
    Row("P07", "pass", {**FILES, "_packages.since_installed": True}, says="are unchanged since the installation"),
    Row("P07", "pass", {**FILES, "_packages.since_installed": True, "_packages.hashed": 2}, says="installation (7 by size and modification time, 2 by the sha256 in"),
    Row("P07", "fail", {**FILES, "packages.altered": ["a: gone"], "_packages.altered_count": 1}, says="1 file is not as installed: a: gone"),
    Row("P07", "fail", {**FILES, **ALTERED}, says="8000 files are not as installed: a: a/0.py is missing; "),
    Row("P07", "fail", {**FILES, **ALTERED}, says="a/4.py is missing; and 7995 more"),
    Row("P07", "fail", {**FILES, "packages.stray_pth": ["evil.pth"]}, says="evil.pth, which Python runs at each start, does not belong to any package"),
    Row("P07", "fail", {**FILES, **ALTERED, "packages.stray_pth": ["evil.pth"], "packages.without_record": ["b: no"]}, says="; evil.pth, which Python runs"),
    Row("P07", "warn", {**FILES, "packages.stray_pth": ["image.pth"], "_packages.own": False}, says="files that do not belong to any package: image.pth"),
    Row("P07", "warn", {**FILES, "packages.stray": ["stray.py"]}, says="files that do not belong to any package: stray.py"),
    Row("P07", "warn", {**FILES, "packages.never_fitted": ["a: a.py is missing"]}, says="already differed from their RECORD when they were installed: a: a.py is missing"),
    Row("P07", "unknown", {**FILES, "packages.without_record": ["a: its RECORD cannot be read: gone"], "packages.stray": ["x"]}, says="cannot check whether files were changed: a: its"),
    Row("T01", "pass", {"torch.version": "2.13.0+cpu", "torch.cuda": None}, {"packages": TORCH, "flavour": "cpu"}),
    Row("T01", "pass", {"torch.version": "2.13.0+cu130", "torch.cuda": "13.0"}, {**FROM_PYPI, "flavour": "cu130"}),
    Row("T01", "fail", {"torch.version": "2.12.0+cpu", "torch.cuda": None}, {"packages": TORCH, "flavour": "cpu"}, "but 2.13.0+cpu is locked"),
    Row("T01", "fail", {"torch.version": "2.13.0+cu130", "torch.cuda": "13.0"}, {**FROM_PYPI, "flavour": "cpu"}, "built for cu130"),
    Row("T02", "pass", {"gpu.available": True, "gpu.count": 1, "gpu.errors": {}}, GPU, "torch can compute on 1 device"),
    Row("T02", "unknown", {"gpu.available": True, "gpu.count": 1}, GPU, "no computation was tried"),
    Row("T02", "pass", {"gpu.available": True, "gpu.count": 1}, {**GPU, "gpu": {"type": "mps", "count": 1}}),
    Row("T02", "fail", {"gpu.available": True, "gpu.count": 1, "gpu.errors": {"cuda:0": BUSY}}, GPU, f"but cannot compute on cuda:0: {BUSY}"),
    Row("T02", "fail", {"gpu.available": True, "gpu.count": 1, "gpu.errors": {"cuda:0": "1 + 1 is 0"}}, GPU, "cuda:0: 1 + 1 is 0"),
    Row("T02", "fail", {"gpu.available": True, "gpu.count": 2}, GPU, "2 devices, but the spec declares 1"),
    Row("T02", "fail", {**NO_GPU_SEEN, "torch.cuda": "12.8"}, GPU, "torch sees no GPU"),
    Row("T02", "fail", {**NO_GPU_SEEN, "torch.cuda": "13.0", "gpu.why": "Found no NVIDIA driver"}, GPU, "1 x L4: Found no NVIDIA driver"),
    Row("T02", "fail", {**NO_GPU_SEEN, "torch.cuda": None}, GPU, "a CPU build"),
    Row("T02", "skip", {}, {"packages": TORCH}, "no GPU is declared"),
    Row("T03", "pass", {"gpu.compute_capability": "8.9", "torch.arch_list": "sm_80 sm_86 sm_90"}, GPU),
    Row("T03", "fail", {"gpu.compute_capability": "7.0", "torch.arch_list": "sm_75 sm_80 sm_90"}, GPU, "no code for compute capability 7.0"),
    Row("T03", "fail", {**CARD, "gpu.compute_capability": "8.7", "torch.arch_list": "sm_80 sm_86 sm_90"}, GPU, "8.7"),
    Row("T03", "unknown", {"gpu.compute_capability": None, "torch.arch_list": None}, GPU),
    Row("D01", "pass", CARD, GPU),
    Row("D01", "fail", {**CARD, "driver.error": 9}, GPU, "is not loaded"),
    Row("D01", "skip", CARD, {"gpu__type": "mps", "gpu__count": 1}),
    Row("D05", "pass", CARD, GPU),
    Row("D05", "fail", {**CARD, "nvml.uncorrected": [0, 2]}, GPU, "2 uncorrected errors"),
    Row("D05", "pass", {**CARD, "nvml.remap_pending": [None], "nvml.remap_failed": [None]}, GPU, "the driver does not report faulty rows and pages"),
    Row("D05", "pass", {**CARD, "nvml.retired_pending": [False]}, GPU, "no rows to remap, no pages to retire"),
    Row("D05", "fail", {**CARD, "nvml.retired_pending": [False, True]}, GPU, "a faulty page of the card's memory will be retired"),
    Row("D05", "warn", {**CARD, "nvml.uncorrected": [None]}, GPU, "the driver does not report the number of errors for 1 of 1 cards"),
    Row("D05", "warn", {**CARD, **UNTOLD_ROWS, "nvml.ecc": [True, True], "nvml.uncorrected": [0, None]}, GPU, "the driver does not report the number of errors for 1 of 2 cards"),
    Row("D05", "warn", {**CARD, **UNTOLD_ROWS, "nvml.uncorrected": [None]}, GPU, "the driver does not report the number of errors"),
    Row("D05", "fail", {**CARD, "nvml.ecc": [True, True], "nvml.uncorrected": [2, None]}, GPU, "2 uncorrected errors"),
    Row("D05", "skip", {**CARD, **UNTOLD_ROWS, "nvml.ecc": [None], "nvml.uncorrected": [None]}, GPU, "do not report memory errors"),
    Row("D01", "pass", {**CARD, "nvml.count_all": 2}, GPU, "NVIDIA L4; CUDA_VISIBLE_DEVICES exposes 1 of 2 GPUs"),
    Row("D01", "fail", {**CARD, "nvml.count_all": 2}, {"gpu": {"type": "L4", "count": 2}}, "CUDA_VISIBLE_DEVICES exposes 1 of the 2 GPUs that the driver sees"),
    Row("D03", "unknown", BESIDE_T400, GPU, "the driver cannot identify them: NVIDIA L4 + NVIDIA T400 4GB"),
    Row("D03", "pass", {**BESIDE_T400, "_gpu.names": ["NVIDIA L4"]}, GPU, "NVIDIA L4, compute capability"),
    Row("D03", "fail", {**BESIDE_T400, "_gpu.names": ["NVIDIA T400 4GB"]}, GPU, "the GPU is NVIDIA T400 4GB, but L4 is declared"),
    Row("D03", "fail", {**BESIDE_T400, "gpu.name": "NVIDIA T400 4GB + Tesla T4", "nvml.pci": ["10de:1eb8", "10de:1fb2"]}, GPU, "L4 is declared"),
    Row("D03", "unknown", {**BESIDE_T400, "gpu.name": "Graphics Device + NVIDIA T400 4GB"}, GPU, "the driver cannot identify them"),
    Row("D03", "pass", {**BESIDE_T400, "gpu.name": "NVIDIA L4"}, GPU, "NVIDIA L4"),
    Row("D04", "unknown", BESIDE_T400, {**GPU, "requires__vram_bytes": 20 * GIB}, "the driver cannot identify them"),
    Row("D04", "pass", {**BESIDE_T400, "memory.total_bytes": 22 * GIB}, {**GPU, "requires__vram_bytes": 20 * GIB}, "22 GiB of GPU memory"),
    Row("D04", "fail", {**BESIDE_T400, "memory.total_bytes": 4 * GIB}, {**GPU, "requires__vram_bytes": 20 * GIB}, "the GPU has only 4 GiB"),
    Row("D04", "unknown", SPLIT, {**GPU, "requires__vram_bytes": 40 * GIB}, "the driver reports only the memory of the whole card"),
    Row("D04", "unknown", SPLIT, {**GPU, "card": FACTS}, "split into partitions (MIG)"),
    Row("D04", "fail", SLICE, {**GPU, "requires__vram_bytes": 40 * GIB}, "the GPU has only 4.75 GiB of memory, but 40 GiB is required"),
    Row("D04", "fail", SLICE, {**GPU, "card": FACTS}, "the GPU has 4.75 GiB of memory, but L4 has"),
    Row("D04", "pass", SLICE, {**GPU, "card": FACTS, "requires__vram_bytes": 4 * GIB}, "4.75 GiB of GPU memory in a MIG partition"),
    Row("D04", "fail", {**SPLIT, "memory.total_bytes": 20 * GIB, "cards.names": ["a", "b"], "cards.memory.total_bytes": [20 * GIB, 5 * GIB]},
        {**GPU, "requires__vram_bytes": 20 * GIB}, "the GPU has only 5 GiB"),
    Row("D04", "fail", {"gpu.vram_bytes": 40 * GIB, "memory.total_bytes": 5 * GIB}, {**GPU, "requires__vram_bytes": 40 * GIB}, "the GPU has only 5 GiB of memory, but 40 GiB"),
    Row("D04", "pass", {"gpu.vram_bytes": 23034 * 2**20, "memory.total_bytes": 22 * GIB}, {**GPU, "card": FACTS}, "22.49 GiB of GPU memory, as expected for"),
    Row("D04", "pass", {"gpu.vram_bytes": None, "memory.total_bytes": 22 * GIB}, {**GPU, "requires__vram_bytes": 20 * GIB}, "22 GiB"),
    Row("D06", "pass", CARD, GPU),
    Row("D06", "fail", {**CARD, "nvml.reasons": [1, 0x48]}, GPU, "hardware slowdown, hardware thermal slowdown"),
    Row("D08", "pass", CARD, GPU),
    Row("D08", "warn", {**CARD, "nvml.used_bytes": [4 * GIB]}, GPU, "4 GiB of 24 GiB"),
    Row("D09", "pass", CARD, GPU),
    Row("D09", "warn", {**CARD, "nvml.mig": [True]}, GPU, "partitions"),
    Row("D05", "warn", {**CARD, "nvml.ecc": [False]}, GPU, "(ECC) for the card's memory is off"),
    Row("D05", "pass", {**CARD, "gpu.name": "NVIDIA RTX A6000", "nvml.ecc": [False]}, GPU, "no uncorrected memory errors"),
    Row("D09", "warn", {**CARD, "nvml.lanes": [4], "nvml.lanes_most": [16]}, GPU, "4 of 16 lanes"),
    Row("D09", "skip", {**CARD, "nvml.mig": [], "nvml.compute_mode": [None], "nvml.power_limit_mw": [None]}, GPU),
    Row("D06", "fail", {**CARD, "nvml.slowed_during.training": ["hardware slowdown"]}, GPU, "under load (training): hardware slowdown"),
    Row("D06", "pass", {**CARD, "nvml.slowed_during.training": []}, GPU, "idle or under load"),
    Row("D06", "skip", {**CARD, "nvml.reasons": [None]}, GPU),
    Row("D07", "pass", CARD, GPU),
    Row("D07", "fail", {**CARD, "nvml.recovery": [0, 2]}, GPU, "requests a restart of the machine"),
    Row("D07", "warn", {**CARD, "nvml.fabric": ["completed", "in progress"]}, GPU, "in progress"),
    Row("D07", "skip", {**CARD, "nvml.recovery": [None]}, GPU),
    Row("D10", "pass", CARD, GPU, "9 tests pass"),
    Row("D10", "warn", {**CARD, "dcgm.failed": ["Inforom: Fail (corrupt)"]}, GPU, "Inforom: Fail (corrupt)"),
    Row("D10", "unknown", {**CARD, "dcgm.error": "no host engine"}, GPU, "no host engine"),
    Row("D10", "skip", {**CARD, "dcgm.level": None}, GPU),
    Row("D11", "pass", {**CARD, "nvml.xids": [13, 31]}, GPU, "other Xids: 13; 31"),
    Row("D11", "warn", {**CARD, "nvml.xids": [31, 79]}, GPU, "Xid 79 (the card fell off the bus)"),
    Row("D11", "unknown", {**CARD, "nvml.xids": None}, GPU, "cannot be read"),
    Row("D02", "pass", {"driver.version": "580.159.03"}, {**GPU, "requires__driver": ">=580"}),
    Row("D02", "fail", {"driver.version": "535.261"}, {**GPU, "requires__driver": ">=580"}, "535.261"),
    Row("D02", "unknown", {"driver.version": None}, {**GPU, "requires__driver": ">=580"}),
    Row("D02", "fail", {"driver.version": "535.261"}, NEWER_CUDA, "driver 535.261 does not satisfy >=580, which torch for cu130 requires"),
    Row("D02", "fail", {"driver.version": "580.1"}, {**NEWER_CUDA, "requires__driver": ">=590"}, "does not satisfy >=590"),
    Row("D02", "pass", {"driver.version": "580.82.07"}, NEWER_CUDA, "satisfies >=580"),
    Row("D02", "warn", {"driver.version": "535.261", "gpu.available": True}, NEWER_CUDA, "torch can use the GPU anyway"),
    Row("D02", "skip", {"driver.version": "535.261"}, GPU),
    Row("D03", "pass", {"gpu.name": "NVIDIA L4", "gpu.compute_capability": "8.9", "nvml.pci": []}, GPU),
    Row("D03", "pass", {"gpu.name": "NVIDIA A100-SXM4-80GB", "gpu.compute_capability": "8.0", "nvml.pci": []}, A100),
    Row("D03", "pass", {**CARD, "gpu.name": "a card without a name"}, GPU),
    Row("D03", "fail", {"gpu.name": "NVIDIA A100-SXM4-40GB", "gpu.compute_capability": "8.0", "nvml.pci": ["10de:20b0"]}, A100, "A100-80GB is declared"),
    Row("D03", "fail", {"gpu.name": "NVIDIA L40S", "gpu.compute_capability": "8.9", "nvml.pci": ["10de:26b9"]}, GPU, "the GPU is NVIDIA L40S"),
    Row("D03", "fail", {"gpu.name": "NVIDIA L4 + Tesla T4", "gpu.compute_capability": "7.5", "nvml.pci": ["10de:1eb8", "10de:27b8"]}, GPU, "L4 + Tesla T4"),
    Row("D03", "fail", {"gpu.name": "Tesla T4", "gpu.compute_capability": "7.5", "nvml.pci": []}, OLD_GPU, "7.5 does not satisfy"),
    Row("D03", "unknown", {"gpu.name": None, "gpu.compute_capability": None, "nvml.pci": []}, GPU),
    Row("D03", "unknown", {"gpu.name": "Tesla T4", "gpu.compute_capability": None, "nvml.pci": []}, OLD_GPU, "no compute capability"),
    Row("D03", "skip", CARD, {"gpu__type": "mps", "gpu__count": 1}),
    Row("D04", "pass", {"gpu.vram_bytes": int(22.5 * GIB)}, {**GPU, "requires__vram_bytes": 24 * GIB}),
    Row("D04", "pass", {"gpu.vram_bytes": 23034 * 2**20}, {**GPU, "card": FACTS}, "as expected for L4"),
    Row("D04", "fail", {"gpu.vram_bytes": 12 * GIB}, {**GPU, "card": FACTS}, "has 12 GiB of memory"),
    Row("D04", "fail", {"gpu.vram_bytes": 48 * GIB}, {**GPU, "card": FACTS}, "has 48 GiB of memory"),
    Row("D04", "fail", {"gpu.vram_bytes": 15 * GIB}, {**GPU, "requires__vram_bytes": 24 * GIB}, "the GPU has only 15 GiB"),
    Row("D04", "unknown", {"gpu.vram_bytes": None}, {**GPU, "requires__vram_bytes": 24 * GIB}),
    Row("D04", "skip", {"gpu.vram_bytes": None}, {**GPU, "card": FACTS}),
    Row("D04", "skip", {"gpu.vram_bytes": GIB}, GPU),
    Row("N01", "pass", GOOD_PRODUCTS, {"packages": TORCH}),
    Row("N01", "fail", {**GOOD_PRODUCTS, "numerics.fp32_error": 2.9e-4}, {"packages": TORCH}, "fp32 matrix products are wrong"),
    Row("N01", "fail", {**GOOD_PRODUCTS, "numerics.bf16_error": 5e-3}, {"packages": TORCH}, "bf16 matrix products are wrong"),
    Row("N01", "fail", {**GOOD_PRODUCTS, "numerics.bf16_outside": 1}, {"packages": TORCH}, "tolerances: 1"),
    Row("N01", "fail", {**GOOD_PRODUCTS, "numerics.fp32_error": "nan"}, {"packages": TORCH}),
    Row("N01", "pass", TF32_PRODUCTS, {**GPU, "training__precision": "tf32"}),
    Row("N02", "pass", {"numerics.fp32_signature": 3e-7}, {"packages": TORCH}),
    Row("N02", "fail", {"numerics.fp32_signature": 2.9e-4}, {"packages": TORCH}, "not computed in fp32"),
    Row("N02", "skip", {"numerics.fp32_signature": 2.9e-4}, {"packages": TORCH, "training__precision": "tf32"}),
    Row("N06", "pass", {"numerics.repeats": True}, {"packages": TORCH}),
    Row("N06", "fail", {"numerics.repeats": False}, {"packages": TORCH}, "not bitwise identical"),
    Row("L01", "pass", {"loaders.fork_sum": EXPECTED_SUM}, {"packages": TORCH, "training__dataloader_workers": 2}),
    Row("L01", "fail", {"loaders.fork_sum": EXPECTED_SUM - 1}, {"packages": TORCH, "training__dataloader_workers": 2}, "their sum is 1 too small"),
    Row("L01", "skip", {"loaders.fork_sum": None}, {"packages": TORCH}),
    Row("L02", "pass", {"loaders.spawn_sum": EXPECTED_SUM}, {"packages": TORCH, "training__dataloader_workers": 2}),
    Row("L02", "fail", {"loaders.spawn_sum": 0}, {"packages": TORCH, "training__dataloader_workers": 2}),
    Row("L02", "warn", {"loaders.spawn_sum": 0}, {"packages": TORCH}),
    Row("R01", "pass", BUILT, {"packages": HF}),
    Row("R01", "fail", {**BUILT, "train.unknown_arguments": ["no_cuda"]}, {"packages": HF, "training__arguments": {"no_cuda": True}}, "no_cuda"),
    Row("R01", "warn", {**BUILT, "train.refused_without_use_cpu": "ValueError: Your setup"}, {"packages": HF}, "needs `use_cpu` for this precision: ValueError"),
    Row("R01", "fail", {**BUILT, "train.refused_arguments": "ValueError: cosin"}, {"packages": HF, "training__arguments": {"lr": "cosin"}}, "cosin"),
    Row("R01", "skip", {}, {"packages": HF, "training": {**TRAINING, **UNSAID, "method": "inference"}}, "method inference"),
    Row("R02", "pass", LEARNED, {"packages": HF}),
    Row("R02", "fail", {**LEARNED, "train.loss_last": 4.4}, {"packages": HF}, "did not learn"),
    Row("R02", "fail", {**LEARNED, "train.loss_last": "nan"}, {"packages": HF}, "did not learn"),
    Row("R02", "fail", {**LEARNED, "train.steps": 20}, {"packages": HF}),
    Row("R02", "fail", {**LEARNED, "train.still": ["lm_head.weight"]}, {"packages": HF}, "weights are not updated: lm_head.weight"),
    Row("R02", "unknown", {**LEARNED, "train.loss_last": 4.4}, {"packages": HF, "training__optimizer": "lomo"}),
    Row("R03", "pass", {"train.dtype": "bfloat16"}, {"packages": HF, "training__precision": "bf16"}),
    Row("R03", "fail", {"train.dtype": "float32"}, {"packages": HF, "training__precision": "fp16"}, "fp16 is not in effect"),
    Row("R03", "fail", {"train.dtype": "float32", "train.device": "cpu"}, {"packages": HF, "training__precision": "tf32"}, "tf32 is not in effect"),
    Row("R03", "fail", {"train.dtype": ""}, {"packages": HF}),
    Row("R03", "fail", {"train.dtype": "bfloat16"}, {"packages": HF}, "fp32 is not in effect: linear layers use bfloat16"),
    Row("R03", "unknown", {"train.dtype": "float32"}, {"packages": HF, "training__precision": "fp8"}),
    Row("R04", "pass", {"train.weights_sha": "aa", "train.repeat_sha": "aa"}, {"packages": HF}),
    Row("R04", "fail", {"train.weights_sha": "aa", "train.repeat_sha": "ab"}, {"packages": HF}, "different weights"),
    Row("R04", "unknown", {"train.weights_sha": None, "train.repeat_sha": None}, {"packages": HF}, "nothing was observed (a second run gives"),
    Row("R05", "pass", RESUMED, {"packages": HF}, "hf-trainer"),
    Row("R05", "unknown", {**RESUMED, "train.weights_sha": "", "resume.weights_sha": ""}, {"packages": HF}, "nothing was observed"),
    Row("R05", "fail", {**RESUMED, "resume.weights_sha": "ab"}, {"packages": HF}, "different weights"),
    Row("R05", "fail", {**RESUMED, "resume.steps": 20}, {"packages": HF}),
    Row("R05", "fail", {**RESUMED, "resume.made": 40}, {"packages": HF}, "took 40 steps instead of the 20"),
    Row("R06", "pass", {"train.checkpoint_missing": [], "train.checkpoint_broken": []}, {"packages": HF}),
    Row("R06", "fail", {"train.checkpoint_missing": ["optimizer.pt"], "train.checkpoint_broken": []}, {"packages": HF}, "optimizer.pt is missing"),
    Row("R06", "fail", {"train.checkpoint_missing": [], "train.checkpoint_broken": ["m: SafetensorError"]}, {"packages": HF}, "SafetensorError"),
    Row("R07", "pass", {"train.options": {"optimizer": ["adamw_torch", "adamw_torch"], "arguments.lr": ["1e-4", 0.0001]}}, {"packages": HF}),
    Row("R07", "fail", {"train.options": {"gradient_checkpointing": [True, False]}}, {"packages": HF}, "gradient_checkpointing is false, but true is declared"),
    Row("R07", "fail", {"train.options": {"arguments.warmup_steps": [10, 0]}}, {"packages": HF}, "warmup_steps"),
    Row("R07", "fail", {"train.options": {"attention": ["flash_attention_2", "sdpa"]}}, {"packages": HF}, 'attention is "sdpa"'),
    Row("R03", "pass", {"train.dtype": "float32", "train.product_error": 1.4e-7}, {"packages": HF}, "relative error 1.4e-07"),
    Row("R03", "fail", {"train.dtype": "float32", "train.product_error": 2.9e-4}, {"packages": HF}, "typical of tf32"),
    Row("R03", "fail", {"train.dtype": "bfloat16", "train.product_error": 0.2}, {"packages": HF, "training__precision": "bf16"}, "not typical of any known format"),
    Row("R10", "pass", {"train.texts": True, "train.rows": True}, {"packages": HF}),
    Row("R10", "fail", {"train.texts": True, "train.rows": False}, {"packages": HF}, "rows changed during the round trip"),
    Row("R10", "skip", {}, {"packages": HF}, "neither tokenizers nor datasets"),
    Row("R11", "pass", ALONE, {"packages": HF}),
    Row("R11", "pass", ALONE, DDP, "not_parallel; ddp is tested by R13"),
    Row("R11", "fail", ALONE, {"packages": HF, "gpu": {"type": "L4", "count": 1}}, "the training run uses cpu, but cuda is declared"),
    Row("R11", "fail", {**ON_CUDA, "train.n_gpu": 2, "train.parallel_mode": "not_distributed"}, {"packages": HF, **TWO_GPUS}, "across 2 GPUs with DataParallel"),
    Row("R11", "fail", {**ON_CUDA, "train.wrapper": "DataParallel"}, {"packages": HF, **TWO_GPUS}, "with DataParallel"),
    Row("R11", "warn", ON_CUDA, {"packages": HF, **TWO_GPUS}, "only one of 2 GPUs was tested"),
    Row("R11", "pass", ON_CUDA, {**DDP, **TWO_GPUS}),
    Row("R12", "pass", ADAPTED, LORA),
    Row("R12", "fail", {**ADAPTED, "train.adapter_loss": [4.7, 4.69]}, LORA, "does not learn"),
    Row("R12", "fail", {**ADAPTED, "train.adapter_loss": ["nan", "nan"]}, LORA, "does not learn"),
    Row("R12", "fail", {**ADAPTED, "train.adapter_base_kept": False}, LORA, "changes the weights of the base"),
    Row("R12", "fail", {**ADAPTED, "train.adapter_reloads": False}, LORA, "after a reload"),
    Row("R12", "skip", {}, {**LORA, "training": {**TRAINING, **UNSAID, "method": "qlora"}}, "needs a GPU"),
    Row("R12", "skip", {}, {"packages": HF}, "no adapter is declared"),
    Row("R13", "pass", SPREAD, DDP),
    Row("R13", "skip", {}, {**DDP, "replicas": JOB}, "G05 trains on all machines"),
    Row("R13", "fail", {**SPREAD, "launch.wrapper": ""}, DDP, "wrapped in nothing"),
    Row("R13", "fail", {**SPREAD, "launch.wrapper": ""}, {**DDP, "training": {**TRAINING, **UNSAID, "strategy": "ddp", "launcher": "python"}}, "ddp with python"),
    Row("R13", "fail", {**SPREAD, "launch.parallel_mode": "not_parallel"}, DDP, "a program trains alone (parallel mode: not_parallel)"),
    Row("R13", "fail", {**SPREAD, "launch.ranks": 1, "_launch.world": [1]}, DDP, "1 process ran (group size 1) instead of 2"),
    Row("R13", "fail", {**SPREAD, "launch.backend": ""}, DDP, "not gloo"),
    Row("R13", "fail", {**SPREAD, "launch.weights_agree": False}, DDP, "different weights"),
    Row("R13", "fail", {**SPREAD, "launch.weights_error": 0.01}, DDP, "by 0.01"),
    Row("R13", "pass", {**SPREAD, "launch.weights_error": 0.016}, {**DDP, "training": {**TRAINING, **UNSAID, "strategy": "ddp", "precision": "bf16"}}),
    Row("R13", "fail", {**SPREAD, "launch.weights_error": 0.48}, {**DDP, "training": {**TRAINING, **UNSAID, "strategy": "ddp", "precision": "bf16"}}, "0.48"),
    Row("R13", "pass", {**SPREAD, "launch.weights_error": 0.0031}, EIGHT_BITS),
    Row("R13", "fail", {**SPREAD, "launch.weights_error": 0.0031}, DDP, "by 0.0031"),
    Row("R13", "fail", {**SPREAD, "launch.weights_error": 0.48}, EIGHT_BITS, "by 0.48"),
    Row("R13", "fail", {**SPREAD, "launch.loss": [4.5, "nan"]}, DDP, "4.5 to nan"),
    Row("R13", "skip", {}, {**DDP, "gpu": {"type": "L4", "count": 1}}, "a single process has no gradients"),
    Row("R13", "skip", {}, {**FSDP, "packages": TORCH}, "the plain torch loop can test ddp, but not fsdp"),
    Row("R13", "fail", {**SPREAD, "launch.loss": [4.5, 4.4]}, DDP, "does not fall"),
    Row("R13", "pass", ON_TWO, {**DDP, **TWO_GPUS}),
    Row("R13", "fail", {**ON_TWO, "launch.devices": ["cuda:0", "cuda:0"]}, {**DDP, **TWO_GPUS}, "share devices"),
    Row("R13", "pass", {**ON_TWO, "launch.wrapper": "FSDPModule"}, FSDP),
    Row("R13", "fail", ON_TWO, FSDP, "not in FSDPModule"),
    Row("R13", "pass", {**ON_TWO, "launch.wrapper": "DeepSpeedEngine"}, ZERO),
    Row("R13", "fail", ON_TWO, ZERO, "not in DeepSpeedEngine"),
    Row("R13", "skip", {}, {**FSDP, "gpu": {"type": None, "count": 0}}, "fsdp needs a GPU"),
    Row("R13", "skip", {}, {**ZERO, "gpu": {"type": None, "count": 0}}, "deepspeed-zero3 needs a GPU"),
    Row("R13", "skip", {}, {"packages": HF}, "no strategy is declared"),
]  # fmt: skip
ROWS += OF_DEVICES
ROWS += OF_JOBS
ROWS += OF_FRAMEWORKS
ROWS += OF_REPLICAS


def test_judging(document: Callable[..., dict[str, Any]], subtests: pytest.Subtests) -> None:
    for row in ROWS:
        with subtests.test(f"{row.id} {row.status}: {row.says}"):
            judgement = judge_one(row.id, parse_expectations(document(**row.changes)), row.seen)
            assert judgement.status.value == row.status
            assert row.says in judgement.message
            if judgement.status in (Status.FAIL, Status.WARN):
                assert judgement.cause
                assert judgement.fix
            if judgement.status is Status.PASS:
                assert judgement.observed not in (None, "", [], {})
            shown = (
                judgement.message,
                judgement.cause or "",
                judgement.fix or "",
                format_json_value(judgement.expected),
                format_json_value(judgement.observed),
            )
            assert [value for text in shown for value in python_values(text)] == []


def test_every_check_is_shown_passing_and_failing() -> None:
    good = {row.id for row in ROWS if row.status == "pass"}
    wrong = {
        row.id
        for row in ROWS
        if row.status == "fail" or (row.status == "warn" and row.id in NEVER_REQUIRED)
    }
    assert good == {check.id for check in CHECKS}
    assert wrong == {check.id for check in CHECKS}


NEVER_REQUIRED = {check.id for check in CHECKS if not check.required_by}


def test_an_import_that_raises_fails_with_its_own_words(
    document: Callable[..., dict[str, Any]],
) -> None:
    expected = parse_expectations(document(direct=["torch"]))
    error = {
        "type": "ImportError",
        "text": "libcudnn.so.9: cannot open shared object file",
        "place": "torch.py:1 in <module>",
    }
    judgement = judge_one(
        "P06", expected, {}, ObservationLog(set({"P06:torch"}), {"P06:torch": error})
    )
    assert judgement.status is Status.FAIL
    assert "libcudnn.so.9" in judgement.message
    assert judgement.cause
    assert "shared library" in judgement.cause


def test_packages_that_an_image_of_a_job_lacks_have_their_own_fix(
    document: Callable[..., dict[str, Any]],
) -> None:
    for shared, fix in ((True, "build the image from the lock"), (False, "recreate the")):
        expected = parse_expectations(document(packages=TORCH, replicas=JOB, shared=shared))
        assert judge_one("P02", expected, {"_packages.installed": {}}).fix.startswith(fix)


def test_a_folder_of_drive_that_is_absent_has_its_own_fix(
    document: Callable[..., dict[str, Any]],
) -> None:
    for path, fix in (
        ("/content/drive/MyDrive/d", "allow the cell to mount"),
        ("/d", "create the"),
    ):
        expected = parse_expectations(document(paths={"data": path}))
        assert judge_one("W01", expected, {"path.data.state": "absent"}).fix.startswith(fix)


@pytest.mark.parametrize(
    ("text", "cause", "fix"),
    [
        (
            (
                "Importing the numpy C-extensions failed. No module named "
                "'numpy._core._multiarray_umath'"
            ),
            "a package is incomplete",
            "P07",
        ),
        ("module 'numpy' has no attribute 'ndarray'", "a package is incomplete", "P07"),
        ("[Errno 13] Permission denied: '/env/lib/x.py'", "has no permission", "chown"),
        (
            "Tried to launch on distributed with multinode, but `MASTER_ADDR` env was not set",
            "RANK, WORLD_SIZE or LOCAL_RANK",
            "unset",
        ),
        ("No space left on device (os error 28)", "is full", "H06"),
        (BUSY, "another program uses the GPU", "nvidia-smi -c 0"),
        ("No CUDA GPUs are available", "torch sees no GPU", "D01 and T02"),
        ("[Errno 30] Read-only file system: '/root/.cache'", "mounted read-only", "HF_HOME"),
        (
            "NCCL error in: ProcessGroupNCCL.cpp:94, unhandled system error, NCCL version 2.27.5",
            "a system call below NCCL failed",
            "NCCL_DEBUG=INFO",
        ),
        (
            (
                "NCCL error: unhandled system error. Error while creating shared memory "
                "segment: No space left on device"
            ),
            "is full",
            "H07",
        ),
        ("[Errno -2] Name or service not known", "a host name cannot be resolved", "/etc/hosts"),
        (
            "something nobody has seen",
            "the error is not a known one",
            "provision verify --only R02",
        ),
    ],
)
def test_an_error_has_a_cause_and_a_way_out(
    document: Callable[..., dict[str, Any]], text: str, cause: str, fix: str
) -> None:
    error = {"type": "OSError", "text": text, "place": "x.py:1"}
    judgement = judge_one(
        "R02",
        parse_expectations(document(packages=HF)),
        {},
        ObservationLog(set({"R02"}), {"R02": error}),
    )
    assert cause in (judgement.cause or "")
    assert fix in (judgement.fix or "")


def test_missing_accelerate_carries_the_original_text_and_the_way_out(
    document: Callable[..., dict[str, Any]],
) -> None:
    expected = parse_expectations(document(packages=HF))
    error = {
        "type": "ImportError",
        "text": "Using the `Trainer` with `PyTorch` requires `accelerate>=1.1.0`",
        "place": "training_args.py:9 in __post_init__",
    }
    judgement = judge_one("R01", expected, {}, ObservationLog(set({"R01"}), {"R01": error}))
    assert judgement.status is Status.FAIL
    assert "requires `accelerate>=1.1.0`" in judgement.message
    assert judgement.fix
    assert "transformers[torch]" in judgement.fix


@pytest.mark.parametrize(
    ("seen", "cause", "fix"),
    [
        (
            {"env.CUDA_VISIBLE_DEVICES": "", "nvml.count": 1},
            "CUDA_VISIBLE_DEVICES='' hides the 1 GPUs that the driver sees",
            "unset",
        ),
        (
            {"env.CUDA_VISIBLE_DEVICES": "", "nvml.count": 0, "nvml.count_all": 2},
            "CUDA_VISIBLE_DEVICES='' hides the 2 GPUs that the driver sees",
            "unset",
        ),
        ({"driver.error": 18, "nvml.count": 0}, "see D01", "D01"),
        (
            {"nvml.count": 1, "driver.version": "535.1"},
            "driver 535.1 is too old for CUDA 13.0 (see D02)",
            "older CUDA",
        ),
        (
            {"nvml.count": 1, "driver.version": "580.1", "gpu.cuda_code": None},
            "libcuda.so.1) cannot be found",
            "NVIDIA_DRIVER_CAPABILITIES",
        ),
        (
            {"nvml.count": 1, "driver.version": "580.1", "gpu.cuda_code": 803},
            "different versions",
            "restart",
        ),
        (
            {"nvml.count": 1, "driver.version": "580.1", "gpu.cuda_code": 804},
            "cuda-compat",
            "LD_LIBRARY_PATH",
        ),
        (
            {"nvml.count": 8, "driver.version": "580.1", "gpu.cuda_code": 802},
            "fabric",
            "nvidia-fabricmanager",
        ),
        (
            {"nvml.count": 1, "driver.version": "580.1", "gpu.cuda_code": 1},
            "no GPU is attached",
            "nvidia-smi",
        ),
    ],
)
def test_why_torch_sees_no_card_is_told_by_what_else_was_seen(
    document: Callable[..., dict[str, Any]], seen: dict[str, Any], cause: str, fix: str
) -> None:
    judgement = judge_one(
        "T02",
        parse_expectations(document(**NEWER_CUDA)),
        {**NO_GPU_SEEN, "torch.cuda": "13.0", **seen},
    )
    assert judgement.status is Status.FAIL
    assert cause in (judgement.cause or "")
    assert fix in (judgement.fix or "")


@pytest.mark.parametrize(
    ("check", "seen", "cause", "fix"),
    [
        (
            "T02",
            {"gpu.available": True, "gpu.count": 2, "gpu.errors": {"cuda:1": BUSY}},
            "another program uses the GPU",
            "D08",
        ),
        (
            "T02",
            {"gpu.available": True, "gpu.count": 2, "gpu.errors": {"cuda:1": "1 + 1 is 0"}},
            "the card cannot compute",
            "D11",
        ),
        (
            "C02",
            {**NOBODY, "several.sums_exit": 1, "_several.sums_tail": NAMELESS},
            "a host name cannot be resolved",
            "/etc/hosts",
        ),
        (
            "C02",
            {
                **NOBODY,
                "several.sums_exit": None,
                "_several.sums_tail": f"addresses cannot be retrieved ({NAMELESS})",
            },
            "a host name cannot be",
            "/etc/hosts",
        ),
        (
            "C02",
            {**NOBODY, "several.sums_exit": 1, "_several.sums_tail": "something new"},
            "a card or its process failed",
            "NCCL_P2P_DISABLE",
        ),
    ],
)
def test_what_cards_or_their_processes_said_tells_the_cause(
    document: Callable[..., dict[str, Any]], check: str, seen: dict[str, Any], cause: str, fix: str
) -> None:
    judgement = judge_one(check, parse_expectations(document(**{**GPU, **TWO_GPUS})), seen)
    assert judgement.status is Status.FAIL
    assert cause in (judgement.cause or "")
    assert fix in (judgement.fix or "")


@pytest.mark.parametrize(
    ("check", "seen", "fix"),
    [
        ("P08", {**LIBRARIES, "libraries.outside": ["/x/libcudnn.so.9"]}, "unset LD_PRELOAD"),
        (
            "P08",
            {
                **LIBRARIES,
                "libraries.outside": ["/x/libcudnn.so.9"],
                "_libraries.variables": {"LD_LIBRARY_PATH": "/x"},
            },
            "remove /x from LD_LIBRARY_PATH",
        ),
        (
            "P08",
            {**LIBRARIES, "libraries.outside": ["/x/libcudnn.so.9"], "_libraries.variables": {}},
            "remove them from the loader path",
        ),
        (
            "T04",
            {"torch.libraries": {"nccl": "2.1.5"}, "env.LD_LIBRARY_PATH": "/x"},
            "remove /x from LD_LIBRARY_PATH; recreate the environment",
        ),
        ("T04", {"torch.libraries": {"nccl": "2.1.5"}}, "check LD_PRELOAD"),
        (
            "E01",
            {"env.LD_LIBRARY_PATH": "/x", "env.LD_PRELOAD": "/y"},
            "unset LD_PRELOAD; remove /x from LD_LIBRARY_PATH, or declare",
        ),
    ],
)
def test_the_way_out_names_what_stands_in_front_and_not_the_driver(
    document: Callable[..., dict[str, Any]], check: str, seen: dict[str, Any], fix: str
) -> None:
    locked = [*TORCH, {"name": "nvidia-nccl-cu13", "version": "2.27.5"}]
    judgement = judge_one(check, parse_expectations(document(**{**GPU, "packages": locked})), seen)
    assert (judgement.fix or "").startswith(fix)


def test_a_death_is_a_failure_of_the_check_under_way_and_the_next_is_unknown(
    document: Callable[..., dict[str, Any]],
) -> None:
    expected = parse_expectations(document(packages=HF))
    account = ObservationLog(
        frozenset({"R01"}),
        {},
        {"R02": "ended by SIGKILL"},
        {"R03": "not observed: the stage ended by SIGKILL"},
    )
    died = judge_one("R02", expected, {}, account)
    assert died.status is Status.FAIL
    assert died.cause
    assert "memory" in died.cause
    assert judge_one("R03", expected, {}, account).status is Status.UNKNOWN


def test_a_host_reading_that_raises_is_unknown_and_not_a_failure(
    document: Callable[..., dict[str, Any]],
) -> None:
    error = {"type": "PermissionError", "text": "denied", "place": "machine.py:1 in _memory"}
    judgement = judge_one(
        "H05",
        parse_expectations(document(requires__ram_bytes=GIB)),
        {},
        ObservationLog(set({"H05"}), {"H05": error}),
    )
    assert judgement.status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("short_of", "fix"),
    [
        (
            "memory",
            (
                "largest saving: training.batch_size: 1 saves about 1 GiB; or run the rehearsal on a "
                "target with more memory"
            ),
        ),
        ("time", "run the rehearsal on a target with a card"),
        (None, "add the missing fields under `training`"),
    ],
)
def test_a_rehearsal_that_is_refused_has_a_way_out(
    document: Callable[..., dict[str, Any]], short_of: str | None, fix: str
) -> None:
    lever = {"change": {"batch_size": 1}, "saves_bytes": GIB}
    seen = {
        "rehearsal.why": "it takes about 109.1 GiB",
        **({"rehearsal.short_of": short_of} if short_of else {}),
    }
    told = judge_one(
        "S01",
        parse_expectations(document(**{**OF_MODEL, "levers": [lever]})),
        seen,
        ObservationLog(set({"S01"})),
    )
    assert told.status is Status.UNKNOWN
    assert str(told.fix).startswith(fix)
    assert str(told.fix).endswith("use `tier: quick` to skip the rehearsal")


def test_what_was_never_observed_is_unknown_and_names_the_check_before_it(
    document: Callable[..., dict[str, Any]],
) -> None:
    error = {"type": "ImportError", "text": "x", "place": ""}
    judgement = judge_one(
        "R05",
        parse_expectations(document(packages=HF)),
        {},
        ObservationLog(set({"R01"}), {"R01": error}),
    )
    assert judgement.status is Status.UNKNOWN
    assert "R01" in judgement.message


@pytest.mark.parametrize(
    ("built", "capability", "covered"),
    [
        ("sm_75 sm_80 sm_86 sm_90", "8.9", True),
        ("sm_75 sm_80 sm_86 sm_90", "7.0", False),
        ("sm_75 sm_80 sm_86 sm_90", "10.0", False),
        ("sm_80 compute_80", "12.0", True),
        ("sm_86", "8.0", False),
        ("sm_100 sm_120", "12.0", True),
        ("sm_80 sm_86 sm_90", "8.7", False),
        ("sm_87", "8.7", True),
        ("sm_87", "8.9", False),
        ("sm_100", "10.1", False),
        ("sm_100", "10.3", True),
        ("sm_101", "11.0", True),
    ],
)
def test_architectures_cover_capabilities(built: str, capability: str, covered: bool) -> None:
    assert has_code_for(built, capability) is covered


@pytest.mark.parametrize(
    ("name", "wanted", "same"),
    [
        ("NVIDIA H200", "H200-141GB", True),
        ("NVIDIA H100 80GB HBM3", "H100-80GB", True),
        ("NVIDIA H100 80GB HBM3", "H100-MEGA-80GB", True),
        ("NVIDIA H100 NVL", "H100-NVL", True),
        ("NVIDIA H100 NVL", "H100-80GB", False),
        ("NVIDIA A100-SXM4-40GB", "A100-80GB", False),
        ("Tesla V100-SXM2-32GB", "V100-32GB", True),
        ("Tesla V100-SXM2-16GB", "V100", True),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000", True),
        ("NVIDIA GeForce RTX 4060 Ti", "RTX-4060-Ti-16GB", True),
        ("NVIDIA GeForce RTX 4060 Ti", "RTX-4060", False),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "RTX-4090", False),
        ("NVIDIA L40S", "L40", False),
        ("Tesla T4", "NVIDIA_TESLA_T4", True),
        ("NVIDIA A100-SXM4-40GB", "nvidia-tesla-a100", True),
        ("NVIDIA L4", "nvidia-l4", True),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "NVIDIA_RTX6000", True),
        ("Quadro RTX 6000", "RTX-PRO-6000", False),
        ("NVIDIA GB200", "B200", False),
    ],
)
def test_what_drivers_call_a_card_is_the_card_of_the_facts_or_not(
    name: str, wanted: str, same: bool
) -> None:
    assert is_declared_gpu(name, wanted) is same


def judge_one(
    id_: str, expected: Expectations, seen: dict[str, Any], account: ObservationLog | None = None
) -> Judgement:
    one = next(
        one for one in select_checks(replace(expected, tier=Tier.BURN)) if one.check.id == id_
    )
    return judge(one, expected, seen, account or ObservationLog(set({one.id})))
