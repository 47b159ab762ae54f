"""Trains a tiny random Llama with Trainer, on the CPU or the card, and compares it with CASE.

Exits 1 while a result differs or the training raises, 0 when all fits.
"""

import os
import sys
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

CASE = {"CASE": "HERE"}
TOKENS = [[(seed * 7 + step * 5) % 124 for step in range(32)] for seed in range(104)]
ROWS = [{"input_ids": row, "labels": row} for row in TOKENS]
SHAPE = {
    "vocab_size": 128,
    "max_position_embeddings": 64,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "use_cache": False,
}
OPTIONS = {
    "max_steps": 40,
    "save_steps": 20,
    "logging_steps": 1,
    "per_device_train_batch_size": 8,
    "learning_rate": 7e-3,
    "report_to": "none",
}
if CASE["precision"] in ("bf16", "fp16", "tf32"):
    OPTIONS |= {"use_cpu": not torch.cuda.is_available(), CASE["precision"]: True}


def train(folder):
    arguments = TrainingArguments(folder, **(OPTIONS | CASE["arguments"]))
    set_seed(20)
    model = LlamaForCausalLM(LlamaConfig(**SHAPE))
    initial = {name: value.detach().clone() for name, value in model.named_parameters()}
    dtypes, trainer = [], Trainer(model=model, args=arguments, train_dataset=ROWS)
    model.model.layers[0].self_attn.q_proj.register_forward_hook(
        lambda _module, _inputs, output: dtypes.append(str(output.dtype))
    )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    weights = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
    unmoved = [name for name, value in initial.items() if torch.equal(value.cpu(), weights[name])]
    return losses, dtypes[-1], weights, unmoved


with tempfile.TemporaryDirectory() as folder:
    losses, dtype, weights, unmoved = train(folder)
    second = train(folder)[2] if CASE["twice"] else weights
    checkpoint = os.path.join(folder, "checkpoint-20")
    missing = [name for name in CASE["files"] if not os.path.isfile(f"{checkpoint}/{name}")]
first, last = sum(losses[:5]) / 5, sum(losses[-5:]) / 5
repeats = all(torch.equal(weights[name], second[name]) for name in weights)
same = "the same" if repeats else "different"
print(f"loss {first:.3g} to {last:.3g}; a second training gives {same} weights")
print(f"computed in {dtype}, expected {CASE['dtype'] or 'any'}")
print(f"missing in the checkpoint: {', '.join(missing) or 'nothing'}")
print(f"weights that did not change: {', '.join(unmoved) or 'none'}")
wrong_dtype = CASE["dtype"] not in (None, dtype.removeprefix("torch."))
sys.exit(bool(missing or unmoved) or not repeats or not last < 0.5 * first or wrong_dtype)
