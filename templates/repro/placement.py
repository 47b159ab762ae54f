"""Says on which device a Trainer would train, and over how many cards it would spread each batch. Exit 1 while that is not as in CASE, 0 when it is."""

import sys
import tempfile

import torch
from transformers import Trainer, TrainingArguments

CASE = {"CASE": "HERE"}

with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, report_to="none", use_cpu=CASE["device"] == "cpu")
    model = torch.nn.Linear(4, 4)
    Trainer(model=model, args=arguments, train_dataset=[])
device = next(model.parameters()).device.type
print(f"the model is on {device}, wanted is {CASE['device']}; one process takes {arguments.n_gpu} cards, {arguments.parallel_mode}")
sys.exit(device != CASE["device"] or arguments.n_gpu > 1)
