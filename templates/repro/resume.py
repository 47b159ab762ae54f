"""Trains a tiny random Llama with Trainer, then resumes it from its checkpoint in a new process.

Exits 1 while the two end with different weights, 0 when they end with the same.
"""

import hashlib
import subprocess
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
    "attention_dropout": 0.1,
    "use_cache": False,
}
OPTIONS = {
    "max_steps": 40,
    "save_steps": 20,
    "per_device_train_batch_size": 8,
    "learning_rate": 7e-3,
    "report_to": "none",
    "disable_tqdm": True,
    "use_cpu": not torch.cuda.is_available(),
    "full_determinism": True,
}
if CASE["precision"] in ("bf16", "fp16", "tf32"):
    OPTIONS[CASE["precision"]] = True


def train(folder, checkpoint):
    torch.set_num_threads(1)
    set_seed(20)
    model = LlamaForCausalLM(LlamaConfig(**SHAPE))
    arguments = TrainingArguments(folder, **(OPTIONS | CASE["arguments"]))
    trainer = Trainer(model=model, args=arguments, train_dataset=ROWS)
    trainer.train(resume_from_checkpoint=checkpoint)
    digest = hashlib.sha256()
    for value in model.state_dict().values():
        octets = value.detach().cpu().contiguous().view(torch.uint8).flatten()
        digest.update(bytes(octets.tolist()))
    return digest.hexdigest()


if len(sys.argv) > 1:
    print(train(sys.argv[1], sys.argv[2]))
    sys.exit()
with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
    straight = train(folder, None)
    argv = [sys.executable, __file__, other, f"{folder}/checkpoint-20"]
    process = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
resumed = process.stdout.split()[-1]
print(f"weights after 40 steps: {straight[:16]}; resumed after 20 steps: {resumed[:16]}")
sys.exit(straight != resumed)
