"""Commands and files that start a training on several devices; the check and `export` use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..expectations import Expectations
from ..model import JsonObject, Proof

CPU_PROCESSES = 2
"""Processes of a strategy on a machine without a GPU: the fewest that have anything to say to each
other.
"""
ACCELERATE_FILE, DEEPSPEED_FILE = "accelerate.yaml", "deepspeed.json"
_MIXED = {"fp16": "fp16", "bf16": "bf16", "fp8": "fp8"}


@dataclass(frozen=True, slots=True)
class Launch:
    """The part of a spec that decides how a training starts; `gpus` 0 is a CPU or Apple GPU.

    `machines` is their number in a job.
    """

    strategy: str
    launcher: str
    precision: str
    gpus: int
    trainer: bool
    accelerate: bool
    machines: int = 1

    @classmethod
    def of(cls, expected: Expectations) -> Launch:
        """Return the launch that the expectations declare."""
        training = expected.training
        return cls(
            training.strategy,
            training.launcher,
            training.precision,
            0 if expected.gpu_type in (None, "mps") else expected.gpu_count,
            expected.proof is Proof.HF_TRAINER,
            "accelerate" in expected.packages,
            1 if expected.replicas is None else expected.replicas.count,
        )

    @property
    def processes(self) -> int:
        """Number of processes: one for each GPU; without a strategy one, unless declared."""
        if self.strategy == "none" and self.launcher in ("auto", "python"):
            return 1
        return self.gpus or (CPU_PROCESSES if self.strategy != "none" else 1)

    @property
    def effective_launcher(self) -> str:
        """The declared launcher; for auto, torchrun for ddp, and accelerate for the others."""
        if self.launcher != "auto":
            return self.launcher
        if self.strategy == "none":
            return "python"
        return "accelerate" if self.strategy != "ddp" and self.accelerate else "torchrun"

    @property
    def needs_cpu_variable(self) -> bool:
        """True if processes of Trainer or Accelerator train alone without ACCELERATE_USE_CPU.

        `accelerate launch` sets it from its file.
        """
        return (
            self.gpus == 0
            and self.strategy in ("ddp", "fsdp")
            and (self.trainer or self.accelerate)
            and self.effective_launcher == "torchrun"
        )

    @property
    def zero_stage(self) -> int:
        """The stage of DeepSpeed's ZeRO; 0 where the strategy is another."""
        return int(self.strategy[-1]) if self.strategy.startswith("deepspeed-zero") else 0


def reason_not_testable(launch: Launch) -> str:
    """Why the check cannot show this strategy; "" when it can."""
    if launch.machines > 1 and launch.trainer and launch.gpus < 2:
        return "each machine has one process: G05 trains on all machines"
    if launch.strategy != "ddp" and not launch.gpus:
        return f"{launch.strategy} needs a GPU: without one, accelerate uses ddp"
    if launch.strategy != "ddp" and not launch.trainer:
        return f"the plain torch loop can test ddp, but not {launch.strategy}"
    return "a single process has no gradients to exchange" if launch.processes == 1 else ""


def launch_command(
    launch: Launch, program: Sequence[str] = ("train.py",), configuration: str = ACCELERATE_FILE
) -> tuple[str, ...]:
    """The words that start `program`, as a person types them in the environment.

    torchrun gets an address, because it otherwise resolves the machine's name, which not every
    machine can.
    """
    return (*_STARTERS[launch.effective_launcher], *_options(launch, configuration), *program)


def launch_command_by_modules(
    launch: Launch, python: str, program: Sequence[str], configuration: str
) -> tuple[str, ...]:
    """Return the command through the interpreter's own modules, not through PATH."""
    return (
        python,
        *_MODULES[launch.effective_launcher],
        *_options(launch, configuration),
        *program,
    )


def accelerate_configuration(launch: Launch) -> JsonObject:
    """Return the file of `accelerate launch --config_file` (ClusterConfig of accelerate 1.15.0).

    A port of 0 lets accelerate find a free one. With MULTI_CPU it starts a single process
    unless mpirun does (simple_launcher in commands/launch.py), so processes on CPU are declared
    as MULTI_GPU with use_cpu, which goes through torchrun.
    """
    # accelerate refuses MULTI_GPU for one process.
    kind = "MULTI_GPU" if (launch.processes > 1) else "NO"
    if launch.strategy == "fsdp":
        kind = "FSDP"
    elif launch.zero_stage:
        kind = "DEEPSPEED"
    document: JsonObject = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": kind,
        "mixed_precision": _MIXED.get(launch.precision, "no"),
        "use_cpu": launch.gpus == 0,
        "num_machines": 1,
        "machine_rank": 0,
        "num_processes": launch.processes,
        "main_process_port": 0,
        "main_training_function": "main",
        "rdzv_backend": "static",
        "same_network": True,
        "debug": False,
    }
    if kind == "FSDP":
        document["fsdp_config"] = dict(_FSDP)
    if kind == "DEEPSPEED":
        document["deepspeed_config"] = _deepspeed_of_accelerate(launch)
    return document


def deepspeed_configuration(launch: Launch) -> JsonObject:
    """Return DeepSpeed's file, by its "DeepSpeed Configuration JSON" page.

    "auto" is filled in by transformers and accelerate from the arguments of the run, so that
    the two cannot contradict each other.
    """
    zero: JsonObject = {
        "stage": launch.zero_stage,
        "overlap_comm": True,
        "contiguous_gradients": True,
        "reduce_bucket_size": "auto",
    }
    if launch.zero_stage == 3:
        zero |= {
            "stage3_prefetch_bucket_size": "auto",
            "stage3_param_persistence_threshold": "auto",
            "stage3_gather_16bit_weights_on_model_save": True,
        }
    return {
        "bf16": {"enabled": "auto"},
        "fp16": {"enabled": "auto"},
        "zero_optimization": zero,
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
    }


def to_yaml(document: JsonObject) -> str:
    """A document of texts, numbers, truth values and one level of mappings as YAML."""
    lines = []
    for key, value in document.items():
        if isinstance(value, dict):
            lines += [f"{key}:", *(f"  {name}: {_scalar(inner)}" for name, inner in value.items())]
        else:
            lines.append(f"{key}: {_scalar(value)}")
    return "\n".join(lines) + "\n"


def _options(launch: Launch, configuration: str) -> tuple[str, ...]:
    return {
        "python": (),
        "torchrun": (
            "--standalone",
            "--local-addr=127.0.0.1",
            f"--nproc_per_node={launch.processes}",
        ),
        "accelerate": ("--config_file", configuration),
    }[launch.effective_launcher]


def _deepspeed_of_accelerate(launch: Launch) -> JsonObject:
    return {
        "zero_stage": launch.zero_stage,
        "offload_optimizer_device": "none",
        "offload_param_device": "none",
        "zero3_init_flag": launch.zero_stage == 3,
        "zero3_save_16bit_model": launch.zero_stage == 3,
    }


def _scalar(value: Any) -> str:
    # Quoted: a bare `no` is the truth value false in YAML 1.1.
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(value)


_FSDP = {
    "fsdp_version": 2,
    "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
    "fsdp_reshard_after_forward": True,
    "fsdp_offload_params": False,
    "fsdp_cpu_ram_efficient_loading": True,
    "fsdp_activation_checkpointing": False,
    "fsdp_state_dict_type": "SHARDED_STATE_DICT",
}
"""fully_shard; gradient checkpointing is left to the arguments of the run, because transformers
refuses it in both places.
"""
_STARTERS = {
    "python": ("python",),
    "torchrun": ("torchrun",),
    "accelerate": ("accelerate", "launch"),
}
_MODULES = {
    "python": (),
    "torchrun": ("-m", "torch.distributed.run"),
    "accelerate": ("-m", "accelerate.commands.launch"),
}
