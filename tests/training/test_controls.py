"""Negative controls on the real Trainer: each breaks one thing, and the check that is there for it fails."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.hf, pytest.mark.slow]

# One process for all controls, because importing is most of their cost. It prints the judgement of every control as one line of JSON.
CONTROLS = """
import json, os, shutil, sys
sys.path.insert(0, sys.argv[1])
os.environ.update(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", WANDB_DISABLED="true")
from dataclasses import replace
from pathlib import Path
from provision_probe.catalogue import asked
from provision_probe.expectations import parse_expectations
from provision_probe.judging import Account, judge
from provision_probe.observing import Bench, observers_of
from provision_probe.observing.training import build_run
from provision_probe.proofs import adapter
from provision_probe.proofs.recipe import Recipe

scratch, document = Path(sys.argv[2]), json.loads(sys.argv[3])
training, resume = observers_of("training"), observers_of("resume")
told = {}

def bench_of(name, **changes):
    document["training"].update(
        dict.fromkeys(("model", "batch_size", "sequence_length")), method="full", torch_compile=False, strategy="none", launcher="auto", **changes
    )
    folder = scratch / name
    folder.mkdir(exist_ok=True)
    return Bench(expected=parse_expectations(document), scratch=folder)

def note(control, bench, id_, seen):
    one = next(one for one in asked(bench.expected) if one.id == id_)
    found = judge(one, bench.expected, seen, Account(frozenset({id_})))
    told[control] = [found.status.value, found.message]

def run(bench, recipe=None):
    seen = training["R01"](bench)
    if recipe is not None:
        bench.memo["recipe"], bench.memo["built"] = recipe, build_run(bench, "straight", recipe)
    return {**seen, **training["R02"](bench)}

def frozen(model):
    model.model.layers[1].requires_grad_(False)

part = bench_of("part")
seen = training["R01"](part)
frozen(part.memo["built"].model)
note("a layer that is frozen", part, "R02", {**seen, **training["R02"](part)})

several = bench_of("several")
seen = training["R01"](several)
several.memo["built"].trainer.args._n_gpu = 2
training["R02"](several)
note("a batch that is spread over two cards", several, "R11", training["R11"](several))

alone = bench_of("workers", dataloader_workers=2)
seen = training["R01"](alone)
loader_of = alone.memo["built"].trainer.get_train_dataloader
def without_workers():
    loader = loader_of()
    loader.__class__.__iter__ = lambda self: iter([self.collate_fn([self.dataset[0]] * 8)] * 13)
    return loader
alone.memo["built"].trainer.get_train_dataloader = without_workers
whole = type(loader_of()).__iter__
training["R02"](alone)
type(loader_of()).__iter__ = whole
note("workers that never start", alone, "R07", training["R07"](alone))
document["training"]["dataloader_workers"] = 0

slow = bench_of("sgd")
note("sgd that does not learn", slow, "R02", run(slow, replace(Recipe.of(slow.expected), optimizer="sgd", learning_rate=3e-3)))
note("another optimizer than declared", slow, "R07", training["R07"](slow) | {"train.options": {
    "optimizer": ["adamw_torch", slow.memo["built"].options["optimizer"][1]]}})

half = bench_of("fp16", precision="fp16")
note("fp16 accepted without a GPU", half, "R03", {**run(half), **training["R03"](half)})

plain = bench_of("plain", precision="fp32")
seen = run(plain)
note("a whole run learns", plain, "R02", seen)
note("precision of a whole run", plain, "R03", {**seen, **training["R03"](plain)})
note("placement of a whole run", plain, "R11", training["R11"](plain))
built = plain.memo["built"]
built.recipe = replace(built.recipe, gradient_checkpointing=True, attention="flash_attention_2", optimizer="adafactor")
note("options that are not in effect", plain, "R07", training["R07"](plain))
note("a whole checkpoint", plain, "R06", training["R06"](plain))
note("resumed from a whole checkpoint", plain, "R05", {**seen, **resume["R05"](plain)})

from transformers import Trainer
train = Trainer.train
Trainer.train = lambda self, resume_from_checkpoint=None: train(self)
note("a checkpoint that is not used", plain, "R05", {**seen, **resume["R05"](plain)})
Trainer.train = train

checkpoint = plain.scratch / "straight" / "checkpoint-20"
kept = plain.scratch / "kept"
for name in ("optimizer.pt", "rng_state.pth"):
    shutil.move(checkpoint / name, kept)
    note(f"{name} deleted", plain, "R06", training["R06"](plain))
    note(f"resumed without {name}", plain, "R05", {**seen, **resume["R05"](plain)})
    shutil.move(kept, checkpoint / name)
for name in ("model.safetensors", "optimizer.pt", "trainer_state.json"):
    whole = (checkpoint / name).read_bytes()
    (checkpoint / name).write_bytes(whole[: len(whole) // 2])
    note(f"{name} truncated", plain, "R06", training["R06"](plain))
    (checkpoint / name).write_bytes(whole)

still = bench_of("still")
recipe = replace(Recipe.of(still.expected), learning_rate=0.0)
if "peft" in sys.argv[4:]:
    for control, one in (("an adapter that learns", Recipe.of(still.expected)), ("an adapter that does not learn", recipe)):
        (still.scratch / one.optimizer).mkdir(exist_ok=True)
        found = adapter.adapt(one, still.scratch / one.optimizer, quantized=False)
        document["training"]["method"] = "lora"
        bench = Bench(expected=parse_expectations(document), scratch=still.scratch)
        note(control, bench, "R12", {f"train.adapter_{name}": value for name, value in found.items()})
print("\\n" + json.dumps(told))
"""
FAILS = {
    "a layer that is frozen": "weights stay as they were: model.layers.1.self_attn.q_proj.weight; model.layers.1.",
    "a batch that is spread over two cards": "over 2 GPUs by DataParallel",
    "workers that never start": "dataloader_workers is 0, declared 2",
    "a checkpoint that is not used": "made 40 steps of its own",
    "sgd that does not learn": "does not learn",
    "another optimizer than declared": "optimizer is",
    "fp16 accepted without a GPU": "fp16 is not in effect: linear layers compute in float32",
    "options that are not in effect": "gradient_checkpointing is False, declared True",
    "optimizer.pt deleted": "optimizer.pt is missing",
    "rng_state.pth deleted": "rng_state.pth is missing",
    "resumed without optimizer.pt": "other weights",
    "resumed without rng_state.pth": "other weights",
    "model.safetensors truncated": "SafetensorError",
    "optimizer.pt truncated": "optimizer.pt: ",
    "trainer_state.json truncated": "JSONDecodeError",
}
HOLDS = ("a whole run learns", "precision of a whole run", "placement of a whole run", "a whole checkpoint", "resumed from a whole checkpoint")
LOCKED = ("torch", "transformers", "accelerate", "safetensors")


@pytest.fixture(scope="module")
def told(hf_python: str, probe: Path, document: Callable[..., dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    found = subprocess.run([hf_python, "-c", "import importlib.util as u; print('peft' if u.find_spec('peft') else '')"], capture_output=True, text=True)
    promised = json.dumps(document(packages=[{"name": name, "version": "1"} for name in LOCKED]))
    command = [hf_python, "-c", CONTROLS, str(probe), str(tmp_path_factory.mktemp("controls")), promised, *found.stdout.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280, env={**os.environ, "ACCELERATE_USE_CPU": "true"})
    assert done.returncode == 0, done.stderr[-2000:]
    answers: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return answers


@pytest.mark.parametrize("control", FAILS)
def test_what_is_broken_fails_with_its_reason(told: dict[str, list[str]], control: str) -> None:
    status, message = told[control]
    assert status == "fail", message
    assert FAILS[control] in message


@pytest.mark.parametrize("control", HOLDS)
def test_what_is_whole_passes(told: dict[str, list[str]], control: str) -> None:
    status, message = told[control]
    assert status == "pass", message


def test_every_option_that_was_not_in_effect_is_named(told: dict[str, list[str]]) -> None:
    message = told["options that are not in effect"][1]
    assert "attention is 'sdpa', declared 'flash_attention_2'" in message
    assert "optimizer is 'torch.optim.adamw.AdamW', declared 'adafactor'" in message


def test_an_adapter_at_a_rate_of_zero_does_not_learn(told: dict[str, list[str]]) -> None:
    if "an adapter that learns" not in told:
        pytest.skip("peft is not in this environment; tests/training/test_stacks.py has it")
    assert told["an adapter that learns"][0] == "pass", told
    assert told["an adapter that does not learn"][0] == "fail", told


NOT_FSDP = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from provision_probe.catalogue import asked
from provision_probe.expectations import parse_expectations
from provision_probe.judging import Account, judge
from provision_probe.observing.launching import start, told
from provision_probe.proofs.launching import Launch
from provision_probe.proofs.ranks import shared_recipe
from provision_probe.proofs.recipe import Recipe

launch = Launch("fsdp", "accelerate", "fp32", 0, True, True)
folder = Path(sys.argv[2])
seen = told(start(launch, shared_recipe(Recipe(), launch), "trainer", folder, dict(os.environ)))
expected = parse_expectations(json.loads(sys.argv[3]))
one = next(one for one in asked(expected) if one.id == "R13")
found = judge(one, expected, {**seen, "launch.by": "accelerate"}, Account(frozenset({"R13"})))
print("\\n" + json.dumps([found.status.value, found.message]))
"""


def test_what_accelerate_makes_of_fsdp_on_a_cpu_is_not_fsdp(hf_python: str, probe: Path, document: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    promised = document(packages=[{"name": name, "version": "1"} for name in LOCKED], gpu={"type": "L4", "count": 2})
    rest = {**dict.fromkeys(("model", "batch_size", "sequence_length")), "method": "full", "torch_compile": False}
    promised["training"] = {**promised["training"], **rest, "strategy": "fsdp", "launcher": "accelerate"}
    environ = {**os.environ, "ACCELERATE_USE_CPU": "true", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [hf_python, "-c", NOT_FSDP, str(probe), str(tmp_path), json.dumps(promised)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280, env=environ)
    assert done.returncode == 0, done.stderr[-2000:]
    status, message = json.loads(done.stdout.splitlines()[-1])
    assert status == "fail"
    assert "wrapped in DistributedDataParallel, Joinable, not in FSDPModule" in message
