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


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


PACKAGES = (
    Package(
        "torch",
        "torch",
        (),
        _names("""
            torch.onnx torch.distributed.tensor torch._dynamo torch._inductor
        """),
    ),
    Package(
        "transformers",
        "transformers",
        ("AutoModel", "PreTrainedModel"),
        _names("""
            Trainer Seq2SeqTrainer pipeline AutoTokenizer AutoProcessor TrainingArguments
            BitsAndBytesConfig GenerationMixin TFPreTrainedModel FlaxPreTrainedModel
            transformers.deepspeed transformers.integrations.deepspeed
            transformers.integrations.bitsandbytes transformers.integrations.peft
            transformers.modeling_flash_attention_utils transformers.models.llama.modeling_llama
            transformers.models.qwen2.modeling_qwen2 transformers.integrations.awq
            transformers.integrations.eetq transformers.integrations.fsdp
            transformers.integrations.ggml transformers.integrations.hqq
            transformers.integrations.tensor_parallel transformers.integrations.accelerate
            transformers.integrations.flash_attention transformers.integrations.flex_attention
            transformers.integrations.finegrained_fp8 transformers.integrations.hub_kernels
            transformers.integrations.integration_utils transformers.trainer_utils
            transformers.trainer_pt_utils transformers.cache_utils transformers.masking_utils
            transformers.pytorch_utils transformers.modeling_gguf_pytorch_utils
            transformers.quantizers.quantizer_bnb_4bit
            transformers.quantizers.quantizer_bnb_8bit transformers.quantizers.quantizer_torchao
            transformers.utils.hub transformers.utils.fx transformers.convert_slow_tokenizer
            transformers.tokenization_utils_fast transformers.image_utils
            transformers.image_transforms transformers.audio_utils
            transformers.models.gpt2.modeling_gpt2 transformers.models.bert.modeling_bert
            transformers.models.gemma2.modeling_gemma2 transformers.models.t5.modeling_t5
            transformers.models.whisper.modeling_whisper
            transformers.models.wav2vec2.modeling_wav2vec2
            transformers.models.mixtral.modeling_mixtral
        """),
    ),
    Package(
        "accelerate",
        "accelerate",
        ("Accelerator",),
        _names("""
            notebook_launcher accelerate.big_modeling accelerate.commands.launch
            accelerate.utils.bnb accelerate.utils.deepspeed accelerate.utils.fsdp_utils
            accelerate.utils.modeling accelerate.checkpointing accelerate.commands.config
            accelerate.commands.estimate accelerate.commands.merge accelerate.data_loader
            accelerate.hooks accelerate.inference accelerate.launchers accelerate.local_sgd
            accelerate.state accelerate.tracking accelerate.utils.ao
            accelerate.utils.dataclasses accelerate.utils.launch accelerate.utils.megatron_lm
            accelerate.utils.memory accelerate.utils.operations accelerate.utils.other
            accelerate.utils.transformer_engine
        """),
    ),
    Package(
        "peft",
        "peft",
        ("PeftModel",),
        _names("""
            LoraConfig LoraModel AdaLoraModel AutoPeftModel prepare_model_for_kbit_training
            peft.tuners.lora.bnb peft.utils.save_and_load peft.helpers peft.mixed_model
            peft.tuners.adalora.bnb peft.tuners.ia3.bnb peft.tuners.lora.arrow
            peft.tuners.lora.awq peft.tuners.lora.corda peft.tuners.lora.eva
            peft.tuners.lora.gptq peft.tuners.lora.layer peft.tuners.lora.tp_layer
            peft.tuners.lora.torchao peft.tuners.loha.layer peft.tuners.oft.bnb
            peft.tuners.prefix_tuning.model peft.tuners.tuners_utils peft.tuners.vera.bnb
            peft.utils.constants peft.utils.integrations peft.utils.loftq_utils peft.utils.other
        """),
    ),
    Package(
        "trl",
        "trl",
        ("SFTTrainer",),
        _names("""
            BCOTrainer CPOTrainer DDPOTrainer DPOTrainer GKDTrainer GRPOTrainer
            IterativeSFTTrainer KTOTrainer NashMDTrainer ORPOTrainer OnlineDPOTrainer PPOTrainer
            PPOv2Trainer PRMTrainer RLOOTrainer RewardTrainer XPOTrainer trl.chat_template_utils
            trl.data_utils trl.extras.vllm_client trl.models.activation_offloading
            trl.models.auxiliary_modules trl.models.modeling_base trl.models.modeling_sd_base
            trl.models.utils trl.trainer.base_trainer trl.trainer.callbacks trl.trainer.utils
            trl.trainer.judges trl.extras.profiling trl.environment.base_environment
            trl.experimental.bco.bco_trainer trl.experimental.cpo.cpo_trainer
            trl.experimental.gkd.gkd_trainer trl.experimental.gold.gold_trainer
            trl.experimental.online_dpo.online_dpo_trainer trl.experimental.orpo.orpo_trainer
            trl.experimental.ppo.ppo_trainer trl.experimental.prm.prm_trainer trl.scripts.chat
            trl.scripts.utils trl.generation.vllm_generation trl.scripts.vllm_serve
        """),
    ),
    Package(
        "datasets",
        "datasets",
        ("Dataset", "load_dataset"),
        _names("""
            Audio IterableDataset Video datasets.formatting.jax_formatter
            datasets.formatting.tf_formatter datasets.formatting.torch_formatter
            datasets.utils.tf_utils datasets.arrow_writer datasets.builder
            datasets.features.features datasets.features.image datasets.fingerprint
            datasets.formatting.formatting datasets.formatting.np_formatter datasets.io.parquet
            datasets.load datasets.packaged_modules.csv.csv datasets.packaged_modules.json.json
            datasets.packaged_modules.parquet.parquet datasets.packaged_modules.text.text
            datasets.packaged_modules.webdataset.webdataset datasets.search datasets.table
            datasets.utils._dill datasets.utils.file_utils datasets.utils.hub
        """),
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
        _names("""
            DeepSpeedEngine InferenceEngine PipelineEngine deepspeed.inference.v2
            deepspeed.compile.backend deepspeed.inference.config deepspeed.linear
            deepspeed.module_inject.auto_tp deepspeed.module_inject.layers
            deepspeed.module_inject.replace_module deepspeed.moe.layer deepspeed.moe.sharded_moe
            deepspeed.ops.adam deepspeed.ops.transformer.inference.triton
            deepspeed.profiling.flops_profiler.profiler deepspeed.runtime.domino.transformer
            deepspeed.runtime.hybrid_engine deepspeed.runtime.sequence_parallel.ulysses_sp
            deepspeed.runtime.zero.partition_parameters deepspeed.sequence.layer
            deepspeed.checkpoint.ds_to_universal deepspeed.utils.zero_to_fp32
            deepspeed.runtime.zero.stage3 deepspeed.runtime.zero.stage_1_and_2
        """),
        sources=True,
    ),
    Package(
        "vllm",
        "vllm",
        ("LLM",),
        _names("""
            AsyncLLMEngine vllm.entrypoints.openai.api_server vllm.lora.peft_helper
            vllm.model_executor.model_loader vllm.model_executor.models.llama
            vllm.transformers_utils.config vllm.transformers_utils.tokenizer
            vllm.v1.worker.gpu_worker vllm.worker.worker vllm.config
            vllm.distributed.parallel_state vllm.engine.arg_utils vllm.entrypoints.chat_utils
            vllm.entrypoints.openai.serving_chat vllm.lora.worker_manager
            vllm.model_executor.model_loader.bitsandbytes_loader
            vllm.model_executor.model_loader.weight_utils vllm.model_executor.models.llava
            vllm.model_executor.models.mllama vllm.model_executor.models.qwen2_5_vl
            vllm.model_executor.models.qwen2_vl vllm.model_executor.models.qwen3_vl
            vllm.model_executor.models.gemma3_mm vllm.model_executor.models.transformers
            vllm.model_executor.models.whisper vllm.multimodal.processing
            vllm.transformers_utils.configs vllm.transformers_utils.processor
            vllm.transformers_utils.detokenizer vllm.transformers_utils.repo_utils
            vllm.v1.structured_output.backend_xgrammar
        """),
    ),
    Package(
        "diffusers",
        "diffusers",
        ("DiffusionPipeline",),
        _names("""
            AutoencoderKL BitsAndBytesConfig ControlNetModel FlaxStableDiffusionPipeline
            FluxPipeline StableDiffusion3Pipeline StableDiffusionControlNetPipeline
            StableDiffusionPipeline StableDiffusionXLPipeline UNet2DConditionModel WanPipeline
            diffusers.training_utils diffusers.hooks diffusers.loaders.ip_adapter
            diffusers.loaders.lora_base diffusers.loaders.lora_pipeline diffusers.loaders.peft
            diffusers.loaders.single_file diffusers.loaders.single_file_utils
            diffusers.loaders.textual_inversion diffusers.models.attention_dispatch
            diffusers.models.attention_processor diffusers.models.modeling_utils
            diffusers.pipelines.pipeline_utils
            diffusers.pipelines.stable_diffusion.safety_checker
            diffusers.pipelines.stable_diffusion.convert_from_ckpt
            diffusers.quantizers.bitsandbytes diffusers.quantizers.gguf
            diffusers.quantizers.torchao diffusers.utils.dynamic_modules_utils
            diffusers.utils.hub_utils diffusers.utils.peft_utils diffusers.utils.testing_utils
            AudioLDM2Pipeline CogVideoXPipeline HunyuanVideoPipeline KandinskyPipeline
            KolorsPipeline LTXPipeline PixArtAlphaPipeline QwenImagePipeline SanaPipeline
            UnCLIPPipeline VersatileDiffusionPipeline BlipDiffusionPipeline
            PaintByExamplePipeline
        """),
    ),
    Package(
        "sentence-transformers",
        "sentence_transformers",
        ("SentenceTransformer",),
        _names("""
            CrossEncoder CrossEncoderTrainer SentenceTransformerTrainer
            SentenceTransformerTrainingArguments SparseEncoder SparseEncoderTrainer
            sentence_transformers.backend sentence_transformers.evaluation
            sentence_transformers.fit_mixin sentence_transformers.losses
            sentence_transformers.model_card sentence_transformers.models
            sentence_transformers.peft_mixin sentence_transformers.quantization
            sentence_transformers.util
        """),
    ),
    Package("tokenizers", "tokenizers"),
    Package(
        "huggingface-hub",
        "huggingface_hub",
        ("snapshot_download", "HfApi"),
        _names("""
            KerasModelHubMixin PyTorchModelHubMixin huggingface_hub.fastai_utils
            huggingface_hub.serialization
        """),
    ),
    Package(
        "safetensors",
        "safetensors",
        ("safetensors.torch",),
        ("safetensors.flax", "safetensors.numpy", "safetensors.tensorflow"),
    ),
    Package("numpy", "numpy"),
    Package(
        "pandas",
        "pandas",
        ("DataFrame",),
        _names("""
            pandas.core.arrays.arrow.array pandas.core.dtypes.cast pandas.core.dtypes.dtypes
            pandas.core.series pandas.io.feather_format pandas.io.orc pandas.io.parquet
        """),
    ),
    Package("pyarrow", "pyarrow", ("pyarrow.parquet",), ("pyarrow.pandas_compat",)),
    Package("triton", "triton", (), ("triton.language", "triton.testing")),
    Package(
        "torchvision", "torchvision", (), ("torchvision.datasets", "torchvision.transforms.v2")
    ),
    Package(
        "xformers",
        "xformers",
        ("xformers.ops",),
        _names("""
            xformers.components xformers.factory xformers.sparse xformers.triton
        """),
    ),
    Package(
        "flash-attn",
        "flash_attn",
        ("flash_attn.flash_attn_interface",),
        _names("""
            flash_attn.bert_padding flash_attn.layers.rotary flash_attn.losses.cross_entropy
            flash_attn.models.bert flash_attn.models.gpt flash_attn.modules.mha
            flash_attn.ops.triton.layer_norm flash_attn.utils.generation
            flash_attn.utils.pretrained
        """),
        sources=True,
    ),
    Package(
        "lightning",
        "lightning",
        ("lightning.pytorch",),
        _names("""
            lightning.fabric lightning.fabric.strategies.fsdp
            lightning.pytorch.strategies.deepspeed lightning.pytorch.strategies.fsdp
            lightning.pytorch.trainer.trainer lightning.fabric.plugins.precision.bitsandbytes
            lightning.fabric.plugins.precision.fsdp lightning.fabric.strategies.deepspeed
            lightning.fabric.strategies.model_parallel lightning.fabric.utilities.throughput
            lightning.pytorch.callbacks lightning.pytorch.cli lightning.pytorch.core.module
            lightning.pytorch.loggers lightning.pytorch.plugins.precision.amp
            lightning.pytorch.strategies.ddp lightning.pytorch.strategies.model_parallel
            lightning.pytorch.utilities.compile
        """),
    ),
    Package(
        "keras",
        "keras",
        (),
        _names("""
            keras.engine.training keras.src.backend.jax keras.src.backend.tensorflow
            keras.src.backend.torch keras.src.engine.training keras.src.backend.jax.nn
            keras.src.backend.jax.numpy keras.src.backend.jax.distribution_lib
            keras.src.backend.tensorflow.numpy keras.src.backend.tensorflow.trainer
            keras.src.backend.torch.numpy keras.src.backend.torch.trainer
            keras.src.saving.saving_lib keras.src.utils.numerical_utils
        """),
    ),
    Package("tensorflow", "tensorflow"),
    Package(
        "jax",
        "jax",
        ("jax.numpy",),
        ("jax.experimental.pallas", "jax.experimental.jax2tf", "jax.experimental.sparse"),
        sources=True,
    ),
    Package("protobuf", "google.protobuf"),
)
MODULES = {package.module.partition(".")[0]: package.name for package in PACKAGES}
