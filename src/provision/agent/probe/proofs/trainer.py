"""The proof through Hugging Face's Trainer: a random 90 000 parameter Llama, built offline."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from ..model import JsonObject
from .instrumentation import (
    ForwardPassCounter,
    LinearLayerRecorder,
    WeightSnapshot,
    built_optimizer,
    detect_attention,
    wrapper_classes,
    zero_weights,
)
from .recipe import ATTENTION, VOCABULARY, Recipe, SequenceDataset, TrainingOutcome, weights_hash

CHECKPOINT_FILES = (
    "config.json",
    "model.safetensors",
    "optimizer.pt",
    "rng_state.pth",
    "scheduler.pt",
    "trainer_state.json",
    "training_args.bin",
)
NOT_EXERCISED = frozenset(
    {
        "output_dir",
        "push_to_hub",
        "report_to",
        "deepspeed",
        "fsdp",
        "fsdp_config",
        "accelerator_config",
        "resume_from_checkpoint",
    }
)
"""Declared arguments that would reach outside the scratch folder or need a launcher; their names
are checked, their values are not applied.
"""


class TrainerRun:
    """Builds model, arguments and Trainer. Raises what transformers raises.

    Declared names that it lacks are noted.
    """

    def __init__(
        self,
        recipe: Recipe,
        folder: Path,
        arguments: JsonObject,
        extra: JsonObject | None = None,
    ) -> None:
        import torch
        from transformers import Trainer, TrainingArguments, set_seed

        torch.set_num_threads(1)
        if recipe.device != "cpu":
            torch.use_deterministic_algorithms(True, warn_only=True)
        own = own_arguments(recipe, folder) | (extra or {})
        self.recipe, self._recomputed, self._workers = recipe, False, 0
        arguments = {name: value for name, value in arguments.items() if name != ATTENTION}
        self.notes: JsonObject = {
            "train.unknown_arguments": sorted(arguments.keys() - argument_names()),
            "train.not_exercised": sorted(arguments.keys() & NOT_EXERCISED),
            "train.refused_arguments": None,
            "train.refused_without_use_cpu": None,
        }
        if recipe.device == "cpu" and "use_cpu" not in arguments:
            names = ("output_dir", "report_to", "fp16", "bf16", "tf32")
            refused = _refusal({name: own[name] for name in names if name in own})
            self.notes["train.refused_without_use_cpu"] = refused
        # Before our own arguments: building a TrainingArguments resets accelerate's state, which
        # the Trainer then needs.
        self.options = self._declared_options(arguments, own)
        self._plain_mode = None
        if recipe.ranks > 1 and recipe.device == "cpu":
            # `own` has use_cpu, which most programs do not set.
            plain = TrainingArguments(output_dir=str(folder), report_to="none")
            self._plain_mode = plain.parallel_mode
        built = TrainingArguments(**own)
        set_seed(recipe.seed)
        self.model = tiny_model(recipe)
        dataset: Any = SequenceDataset()
        self.trainer = Trainer(model=self.model, args=built, train_dataset=dataset)
        self.trainer.create_optimizer()

    def train(self, resume_from: Path | None = None) -> TrainingOutcome:
        """Train to the last step, from the start or from a checkpoint."""
        if resume_from:
            zero_weights(self.model)
        # Each of several processes may have only a part of every weight: R13 compares weights then.
        before = WeightSnapshot(self.model) if self.recipe.ranks == 1 else None
        passes = ForwardPassCounter(self.model)
        try:
            with LinearLayerRecorder(first_linear(self.model)) as linear:
                self.trainer.train(resume_from_checkpoint=str(resume_from) if resume_from else None)
        finally:
            passes.remove()
        self._recomputed, self._workers = len(linear.types) > passes.count > 0, passes.workers.most
        return TrainingOutcome(
            logged_losses(self.trainer),
            weights_hash(self.model.state_dict()),
            linear.dtype,
            self.trainer.state.global_step,
            passes.count,
            before.unchanged(self.model) if before else (),
            linear.product_error(),
        )

    def placement(self) -> JsonObject:
        """Readings of the placement: Trainer's device, GPUs, parallel mode, wrapping classes.

        The parallel mode of several processes on a CPU is that of a program without `use_cpu`.
        """
        arguments = self.trainer.args
        return {
            "train.device": next(self.model.parameters()).device.type,
            "train.n_gpu": arguments.n_gpu,
            "train.parallel_mode": _plain(self._plain_mode or arguments.parallel_mode),
            "train.wrapper": ", ".join(wrapper_classes(self.trainer.model_wrapped)),
        }

    def record_effective_options(self) -> None:
        """Record, after training, the optimizer's class, recomputation, workers and attention."""
        import torch

        recipe = self.recipe
        self.options["optimizer"] = (
            recipe.optimizer,
            built_optimizer(recipe.optimizer, self.trainer.optimizer),
        )
        self.options["gradient_checkpointing"] = (recipe.gradient_checkpointing, self._recomputed)
        self.options["dataloader_workers"] = (recipe.workers, self._workers)
        symbols = torch.tensor(
            [SequenceDataset()[0]["input_ids"]], device=next(self.model.parameters()).device
        )
        wanted = recipe.attention or self.model.config._attn_implementation
        with self.trainer.compute_loss_context_manager():
            self.options["attention"] = (wanted, detect_attention(self.model, symbols))

    def _declared_options(
        self, arguments: JsonObject, own: JsonObject
    ) -> dict[str, tuple[Any, Any]]:
        from transformers import TrainingArguments

        applied = {
            name: value
            for name, value in arguments.items()
            if name in argument_names() and name not in NOT_EXERCISED
        }
        if not applied:
            return {}
        safe = ("output_dir", "report_to", "use_cpu", "disable_tqdm")
        values = {name: own[name] for name in safe if name in own} | applied
        refused = self.notes["train.refused_arguments"] = _refusal(values)
        if refused is not None:
            return {}
        built = TrainingArguments(**values)
        numbers = {
            field.name
            for field in dataclasses.fields(TrainingArguments)
            if type(field.default) in (int, float)
        }
        return {
            f"arguments.{name}": (value, _in_effect(getattr(built, name), name in numbers))
            for name, value in applied.items()
        }


Run = TrainerRun
"""The run of this proof; each proof module has one of this name."""


def _refusal(arguments: JsonObject) -> str | None:
    """Return the error with which transformers refuses arguments; None if it takes them."""
    from transformers import TrainingArguments

    try:
        TrainingArguments(**arguments)
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    return None


def argument_names() -> frozenset[str]:
    """Return the names of the arguments that the installed transformers has."""
    from transformers import TrainingArguments

    return frozenset(field.name for field in dataclasses.fields(TrainingArguments))


def logged_losses(trainer: Any) -> tuple[float, ...]:
    """Return the loss of each step that a Trainer made."""
    return tuple(float(entry["loss"]) for entry in trainer.state.log_history if "loss" in entry)


def tiny_model(recipe: Recipe) -> Any:
    """Return a Llama of 90 432 random parameters, which follow from torch's random state."""
    from transformers import LlamaConfig, LlamaForCausalLM

    configuration = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=64,
        attention_dropout=recipe.dropout,
        tie_word_embeddings=False,
        use_cache=False,
        **({ATTENTION: recipe.attention} if recipe.attention else {}),
    )
    return LlamaForCausalLM(configuration)


def first_linear(model: Any) -> Any:
    """The linear layer that is watched: the queries' projection of the first block."""
    return model.model.layers[0].self_attn.q_proj


def own_arguments(recipe: Recipe, folder: Path) -> JsonObject:
    """Return a recipe's TrainingArguments, as far as the installed transformers has them."""
    names = argument_names()
    arguments = {
        "output_dir": str(folder),
        "max_steps": recipe.steps,
        "save_strategy": "steps",
        "save_steps": recipe.save_at,
        "logging_strategy": "steps",
        "logging_steps": 1,
        "per_device_train_batch_size": recipe.batch,
        "learning_rate": recipe.learning_rate,
        "optim": recipe.optimizer,
        "seed": recipe.seed,
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": recipe.device == "cpu",
        "dataloader_num_workers": recipe.workers,
        "dataloader_pin_memory": recipe.device == "cuda",
        # transformers 5.23 renamed gradient_checkpointing and deprecates the old name.
        "activation_checkpointing": recipe.gradient_checkpointing,
    }
    if "activation_checkpointing" not in names:
        arguments["gradient_checkpointing"] = recipe.gradient_checkpointing
    if recipe.precision in ("fp16", "bf16", "tf32"):
        arguments[recipe.precision] = True
    return {name: value for name, value in arguments.items() if name in names}


def _in_effect(value: Any, is_number: bool) -> Any:
    # YAML 1.1 reads 1e-4 as a text; transformers keeps it and fails much later, in the optimizer.
    return (
        f"the string {value!r}, not a number"
        if is_number and isinstance(value, str)
        else _plain(value)
    )


def _plain(value: Any) -> Any:
    value = getattr(value, "value", value)
    return value if isinstance(value, (int, float, str, list, dict, type(None))) else str(value)
