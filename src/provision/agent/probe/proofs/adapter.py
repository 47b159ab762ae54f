"""A LoRA adapter on a frozen random model: it trains, saves and loads; the base is unchanged."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from ..model import JsonObject
from .recipe import Recipe, SequenceDataset, half_type, weights_hash
from .trainer import logged_losses, own_arguments, tiny_model

STEPS, RANK, RATE = 40, 8, 2e-2


def train_adapter(recipe: Recipe, folder: Path, *, quantized: bool) -> JsonObject:
    """Train an adapter; return losses, trainable parameters, and whether base and answers agree.

    With `quantized` the base is loaded in 4 bit by bitsandbytes, as QLoRA does; that needs a
    GPU.
    """
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import Trainer, TrainingArguments, set_seed

    recipe = dataclasses.replace(
        recipe,
        learning_rate=RATE if recipe.learning_rate else 0.0,
        steps=STEPS,
        save_at=STEPS,
        optimizer="adamw_torch",
    )
    arguments = TrainingArguments(**own_arguments(recipe, folder))
    set_seed(recipe.seed)
    start = tiny_model(recipe)
    base = _in_four_bits(start, folder / "base", recipe) if quantized else start
    if recipe.gradient_checkpointing:
        # The base is frozen, and checkpointing that re-enters needs an input with a gradient:
        # without one transformers 4.x ends in an error.
        base.enable_input_require_grads()
    untouched = weights_hash(base.state_dict())
    model = get_peft_model(
        base,
        LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear", task_type="CAUSAL_LM"),
    )
    dataset: Any = SequenceDataset()
    trainer = Trainer(model=model, args=arguments, train_dataset=dataset)
    trainer.train()
    losses = logged_losses(trainer)
    # Takes off what accelerate wrapped around the forward pass: the adapter that is read back has
    # no autocast either.
    model = trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)
    model.save_pretrained(str(folder / "saved"))
    symbols = torch.tensor(
        [SequenceDataset()[1]["input_ids"]], device=next(model.parameters()).device
    )
    answers = _answers(model, symbols)
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    bare = model.unload()
    kept = weights_hash(bare.state_dict()) == untouched
    again = PeftModel.from_pretrained(bare, str(folder / "saved"))
    return {
        "loss": [sum(losses[:5]) / 5, sum(losses[-5:]) / 5],
        "parameters": trained,
        "base_kept": kept,
        "reloads": bool(torch.equal(answers, _answers(again, symbols))),
    }


def _answers(model: Any, symbols: Any) -> Any:
    import torch

    model.eval()
    with torch.no_grad():
        return model(input_ids=symbols).logits


def _in_four_bits(model: Any, folder: Path, recipe: Recipe) -> Any:
    import torch
    from peft import prepare_model_for_kbit_training
    from transformers import BitsAndBytesConfig, LlamaForCausalLM

    model.save_pretrained(str(folder))
    four_bits = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype=half_type(recipe.precision) or torch.float32,
    )
    return prepare_model_for_kbit_training(
        LlamaForCausalLM.from_pretrained(
            str(folder), quantization_config=four_bits, device_map={"": 0}
        )
    )
