"""Trains a tiny random Llama by Trainer, then again from its checkpoint in a fresh process. Exit 1 while the two end at other weights, 0 when at the same."""

import hashlib
import subprocess
import sys
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

CASE = {"CASE": "HERE"}
ROWS = [{"input_ids": row, "labels": row} for row in ([(seed * 7 + step * 5) % 124 for step in range(32)] for seed in range(104))]
SIZES = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "attention_dropout": 0.1}


def trained(folder, start):
    torch.set_num_threads(1)
    own = {"max_steps": 40, "save_steps": 20, "per_device_train_batch_size": 8, "learning_rate": 7e-3, "report_to": "none", "disable_tqdm": True}
    own |= {"use_cpu": not torch.cuda.is_available(), "full_determinism": True}
    given = own | ({CASE["precision"]: True} if CASE["precision"] in ("bf16", "fp16", "tf32") else {}) | CASE["arguments"]
    set_seed(20)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=128, max_position_embeddings=64, use_cache=False, **SIZES))
    Trainer(model=model, args=TrainingArguments(folder, **given), train_dataset=ROWS).train(resume_from_checkpoint=start)
    total = hashlib.sha256()
    for value in model.state_dict().values():
        total.update(bytes(value.detach().cpu().contiguous().view(torch.uint8).flatten().tolist()))
    return total.hexdigest()


if len(sys.argv) > 1:
    print(trained(sys.argv[1], sys.argv[2]))
    sys.exit()
with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
    straight = trained(folder, None)
    done = subprocess.run([sys.executable, __file__, other, f"{folder}/checkpoint-20"], stdout=subprocess.PIPE, text=True, check=True)
resumed = done.stdout.split()[-1]
print(f"40 steps end at the weights {straight[:16]}, 20 of them from a checkpoint at {resumed[:16]}")
sys.exit(straight != resumed)
