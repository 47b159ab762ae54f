"""Trains a LoRA adapter of a frozen tiny Llama, saves it and reads it back. Exit 1 while it does not learn, changes the base or answers otherwise, 0 if not."""

import sys
import tempfile

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

CASE = {"CASE": "HERE"}
ROWS = [{"input_ids": row, "labels": row} for row in ([(seed * 7 + step * 5) % 124 for step in range(32)] for seed in range(104))]
SIZES = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4}


def answers(model):
    with torch.no_grad():
        return model.eval()(input_ids=torch.tensor([ROWS[1]["input_ids"]], device=next(model.parameters()).device)).logits


with tempfile.TemporaryDirectory() as folder:
    own = {"max_steps": 40, "logging_steps": 1, "per_device_train_batch_size": 8, "learning_rate": 2e-2, "report_to": "none", "disable_tqdm": True}
    own |= {CASE["precision"]: True} if CASE["precision"] in ("bf16", "fp16", "tf32") else {}
    arguments = TrainingArguments(folder, use_cpu=not torch.cuda.is_available(), **own)
    set_seed(20)
    base = LlamaForCausalLM(LlamaConfig(vocab_size=128, max_position_embeddings=64, use_cache=False, **SIZES))
    before = {name: value.detach().cpu().clone() for name, value in base.state_dict().items()}
    model = get_peft_model(base, LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM"))
    trainer = Trainer(model=model, args=arguments, train_dataset=ROWS)
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    model = trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)
    model.save_pretrained(f"{folder}/saved")
    told = answers(model)
    bare = model.unload()
    kept = all(torch.equal(value.cpu(), before[name]) for name, value in bare.state_dict().items())
    reloads = torch.equal(told, answers(PeftModel.from_pretrained(bare, f"{folder}/saved")))
first, last = sum(losses[:5]) / 5, sum(losses[-5:]) / 5
print(f"loss {first:.3g} to {last:.3g}, less than {CASE['share']} of it wanted; the base is kept: {kept}; the saved adapter answers alike: {reloads}")
sys.exit(not last < CASE["share"] * first or not kept or not reloads)
