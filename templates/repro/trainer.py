"""Trains a tiny random Llama by Trainer on the CPU or the card, and looks at what CASE names. Exit 1 while that is otherwise or it raises, 0 when it holds."""

import os
import sys
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

CASE = {"CASE": "HERE"}
ROWS = [{"input_ids": row, "labels": row} for row in ([(seed * 7 + step * 5) % 124 for step in range(32)] for seed in range(104))]
SIZES = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4}


def trained(folder):
    own = {"max_steps": 40, "save_steps": 20, "logging_steps": 1, "per_device_train_batch_size": 8, "learning_rate": 7e-3, "report_to": "none"}
    given = own | {"use_cpu": not torch.cuda.is_available()} | {CASE["precision"]: True} if CASE["precision"] in ("bf16", "fp16", "tf32") else own
    arguments = TrainingArguments(folder, **(given | CASE["arguments"]))
    set_seed(20)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=128, max_position_embeddings=64, use_cache=False, **SIZES))
    start = {name: value.detach().clone() for name, value in model.named_parameters()}
    types, trainer = [], Trainer(model=model, args=arguments, train_dataset=ROWS)
    model.model.layers[0].self_attn.q_proj.register_forward_hook(lambda _module, _inputs, output: types.append(str(output.dtype)))
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    still = [name for name, value in model.named_parameters() if torch.equal(start[name], value.detach().cpu())]
    return sum(losses[:5]), sum(losses[-5:]), types[-1], {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}, still


with tempfile.TemporaryDirectory() as folder:
    first, last, kind, weights, still = trained(folder)
    other = trained(folder)[3] if CASE["twice"] else weights
    missing = [name for name in CASE["files"] if not os.path.isfile(os.path.join(folder, "checkpoint-20", name))]
same = all(torch.equal(weights[name], other[name]) for name in weights)
print(f"loss {first / 5:.3g} to {last / 5:.3g}; computed in {kind}, wanted {CASE['dtype'] or 'any'}; missing of the checkpoint: {missing}; repeats: {same}")
print("weights that did not move:", still)
sys.exit(bool(missing or still) or not same or not last < 0.5 * first or CASE["dtype"] not in (None, kind.removeprefix("torch.")))
