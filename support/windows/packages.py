"""The packages that are read, their modules, and the names that people import from them first."""

from __future__ import annotations

from typing import NamedTuple


class Package(NamedTuple):
    """A package as the script reads it.

    Attributes:
        name: the name on the index.
        module: the module that it installs.
        main: names or modules without which nearly nobody uses it: a missing name there breaks it.
        others: further entry points: a missing name there breaks a part.
    """

    name: str
    module: str
    main: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


SINCE = "2022-07-01"
"""The first day of upload of the releases that are read: about that of torch 1.12."""

PACKAGES = (
    Package("torch", "torch"),
    Package(
        "transformers",
        "transformers",
        ("AutoModel", "PreTrainedModel"),
        ("Trainer", "Seq2SeqTrainer", "pipeline", "AutoTokenizer", "TrainingArguments"),
    ),
    Package("accelerate", "accelerate", ("Accelerator",)),
    Package("peft", "peft", ("PeftModel",), ("LoraConfig",)),
    Package(
        "trl",
        "trl",
        ("SFTTrainer",),
        ("DPOTrainer", "GRPOTrainer", "PPOTrainer", "RewardTrainer", "KTOTrainer", "ORPOTrainer"),
    ),
    Package("datasets", "datasets", ("Dataset", "load_dataset")),
    Package("bitsandbytes", "bitsandbytes", ("bitsandbytes.nn", "bitsandbytes.optim")),
    Package("deepspeed", "deepspeed"),
    Package("vllm", "vllm", ("LLM",)),
    Package(
        "diffusers",
        "diffusers",
        ("DiffusionPipeline",),
        (
            "StableDiffusionPipeline",
            "StableDiffusionXLPipeline",
            "FluxPipeline",
            "UNet2DConditionModel",
        ),
    ),
    Package("sentence-transformers", "sentence_transformers", ("SentenceTransformer",)),
    Package("tokenizers", "tokenizers"),
    Package("huggingface-hub", "huggingface_hub", ("snapshot_download", "HfApi")),
    Package("safetensors", "safetensors", ("safetensors.torch",)),
    Package("numpy", "numpy"),
    Package("pandas", "pandas"),
    Package("pyarrow", "pyarrow", ("pyarrow.parquet",)),
    Package("triton", "triton"),
    Package("torchvision", "torchvision"),
    Package("xformers", "xformers", ("xformers.ops",)),
    Package("flash-attn", "flash_attn"),
    Package("lightning", "lightning", ("lightning.pytorch",)),
    Package("keras", "keras"),
    Package("tensorflow", "tensorflow"),
    Package("jax", "jax", ("jax.numpy",)),
    Package("protobuf", "google.protobuf"),
)
MODULES = {package.module.partition(".")[0]: package.name for package in PACKAGES}
