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
        sources: whether releases without a wheel are read from their source distribution, which is
            fetched whole.
    """

    name: str
    module: str
    main: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    sources: bool = False


SINCE = "2022-07-01"
"""The first day of upload of the releases that are read: about that of torch 1.12."""

PACKAGES = (
    Package(
        "torch",
        "torch",
        (),
        ("torch.onnx", "torch.distributed.tensor", "torch._dynamo", "torch._inductor"),
    ),
    Package(
        "transformers",
        "transformers",
        ("AutoModel", "PreTrainedModel"),
        (
            "Trainer",
            "Seq2SeqTrainer",
            "pipeline",
            "AutoTokenizer",
            "AutoProcessor",
            "TrainingArguments",
            "BitsAndBytesConfig",
            "GenerationMixin",
            "TFPreTrainedModel",
            "FlaxPreTrainedModel",
            "transformers.deepspeed",
            "transformers.integrations.deepspeed",
            "transformers.integrations.bitsandbytes",
            "transformers.integrations.peft",
            "transformers.modeling_flash_attention_utils",
            "transformers.models.llama.modeling_llama",
            "transformers.models.qwen2.modeling_qwen2",
        ),
    ),
    Package(
        "accelerate",
        "accelerate",
        ("Accelerator",),
        (
            "notebook_launcher",
            "accelerate.big_modeling",
            "accelerate.commands.launch",
            "accelerate.utils.bnb",
            "accelerate.utils.deepspeed",
            "accelerate.utils.fsdp_utils",
            "accelerate.utils.modeling",
        ),
    ),
    Package(
        "peft",
        "peft",
        ("PeftModel",),
        (
            "LoraConfig",
            "LoraModel",
            "AdaLoraModel",
            "AutoPeftModel",
            "prepare_model_for_kbit_training",
            "peft.tuners.lora.bnb",
            "peft.utils.save_and_load",
        ),
    ),
    Package(
        "trl",
        "trl",
        ("SFTTrainer",),
        (
            "BCOTrainer",
            "CPOTrainer",
            "DDPOTrainer",
            "DPOTrainer",
            "GKDTrainer",
            "GRPOTrainer",
            "IterativeSFTTrainer",
            "KTOTrainer",
            "NashMDTrainer",
            "ORPOTrainer",
            "OnlineDPOTrainer",
            "PPOTrainer",
            "PPOv2Trainer",
            "PRMTrainer",
            "RLOOTrainer",
            "RewardTrainer",
            "XPOTrainer",
            "trl.generation.vllm_generation",
            "trl.scripts.vllm_serve",
        ),
    ),
    Package(
        "datasets",
        "datasets",
        ("Dataset", "load_dataset"),
        (
            "Audio",
            "IterableDataset",
            "Video",
            "datasets.formatting.jax_formatter",
            "datasets.formatting.tf_formatter",
            "datasets.formatting.torch_formatter",
            "datasets.utils.tf_utils",
        ),
    ),
    Package(
        "bitsandbytes",
        "bitsandbytes",
        ("bitsandbytes.nn", "bitsandbytes.optim"),
        ("bitsandbytes.nn.triton_based_modules", "bitsandbytes.research"),
    ),
    Package(
        "deepspeed",
        "deepspeed",
        (),
        (
            "DeepSpeedEngine",
            "InferenceEngine",
            "PipelineEngine",
            "deepspeed.inference.v2",
            "deepspeed.runtime.zero.stage3",
            "deepspeed.runtime.zero.stage_1_and_2",
        ),
        sources=True,
    ),
    Package(
        "vllm",
        "vllm",
        ("LLM",),
        (
            "AsyncLLMEngine",
            "vllm.entrypoints.openai.api_server",
            "vllm.lora.peft_helper",
            "vllm.model_executor.model_loader",
            "vllm.model_executor.models.llama",
            "vllm.transformers_utils.config",
            "vllm.transformers_utils.tokenizer",
            "vllm.v1.worker.gpu_worker",
            "vllm.worker.worker",
        ),
    ),
    Package(
        "diffusers",
        "diffusers",
        ("DiffusionPipeline",),
        (
            "AutoencoderKL",
            "BitsAndBytesConfig",
            "ControlNetModel",
            "FlaxStableDiffusionPipeline",
            "FluxPipeline",
            "StableDiffusion3Pipeline",
            "StableDiffusionControlNetPipeline",
            "StableDiffusionPipeline",
            "StableDiffusionXLPipeline",
            "UNet2DConditionModel",
            "WanPipeline",
            "diffusers.training_utils",
        ),
    ),
    Package(
        "sentence-transformers",
        "sentence_transformers",
        ("SentenceTransformer",),
        ("CrossEncoder", "SentenceTransformerTrainer", "SparseEncoder"),
    ),
    Package("tokenizers", "tokenizers"),
    Package(
        "huggingface-hub",
        "huggingface_hub",
        ("snapshot_download", "HfApi"),
        ("KerasModelHubMixin", "PyTorchModelHubMixin", "huggingface_hub.serialization"),
    ),
    Package(
        "safetensors",
        "safetensors",
        ("safetensors.torch",),
        ("safetensors.flax", "safetensors.numpy", "safetensors.tensorflow"),
    ),
    Package("numpy", "numpy"),
    Package("pandas", "pandas", ("DataFrame",), ("pandas.io.parquet",)),
    Package("pyarrow", "pyarrow", ("pyarrow.parquet",), ("pyarrow.pandas_compat",)),
    Package("triton", "triton", (), ("triton.language", "triton.testing")),
    Package(
        "torchvision",
        "torchvision",
        (),
        ("torchvision.datasets", "torchvision.transforms.v2"),
    ),
    Package(
        "xformers",
        "xformers",
        ("xformers.ops",),
        ("xformers.components", "xformers.factory", "xformers.sparse", "xformers.triton"),
    ),
    Package(
        "flash-attn",
        "flash_attn",
        ("flash_attn.flash_attn_interface",),
        (
            "flash_attn.bert_padding",
            "flash_attn.layers.rotary",
            "flash_attn.losses.cross_entropy",
            "flash_attn.models.bert",
            "flash_attn.models.gpt",
            "flash_attn.modules.mha",
            "flash_attn.ops.triton.layer_norm",
            "flash_attn.utils.generation",
            "flash_attn.utils.pretrained",
        ),
        sources=True,
    ),
    Package(
        "lightning",
        "lightning",
        ("lightning.pytorch",),
        (
            "lightning.fabric",
            "lightning.fabric.strategies.fsdp",
            "lightning.pytorch.strategies.deepspeed",
            "lightning.pytorch.strategies.fsdp",
            "lightning.pytorch.trainer.trainer",
        ),
    ),
    Package(
        "keras",
        "keras",
        (),
        (
            "keras.engine.training",
            "keras.src.backend.jax",
            "keras.src.backend.tensorflow",
            "keras.src.backend.torch",
            "keras.src.engine.training",
        ),
    ),
    Package("tensorflow", "tensorflow"),
    Package("jax", "jax", ("jax.numpy",), ("jax.experimental.pallas",), sources=True),
    Package("protobuf", "google.protobuf"),
)
MODULES = {package.module.partition(".")[0]: package.name for package in PACKAGES}
