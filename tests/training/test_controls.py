"""Negative controls on the real Trainer: each breaks one thing, and the check that is there for it
fails.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.hf

# One process for all controls, because importing is most of their cost. It prints the judgement of
# every control as one line of JSON.
CONTROLS = """
import json, os, shutil, sys
sys.path.insert(0, sys.argv[1])
os.environ.update(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", WANDB_DISABLED="true")
from dataclasses import replace
from pathlib import Path
from provision_probe.probe.catalogue import select_checks
from provision_probe.probe.expectations import parse_expectations
from provision_probe.probe.judging import ObservationLog, judge
from provision_probe.probe.context import ObserverContext
from provision_probe.probe.observing import observers_of
from provision_probe.probe.observing.training import build_run
from provision_probe.probe.proofs import adapter
from provision_probe.probe.proofs.recipe import Recipe

scratch, document = Path(sys.argv[2]), json.loads(sys.argv[3])
training, resume = observers_of("training"), observers_of("resume")
told = {}

def bench_of(name, **changes):
    document["training"].update(
        dict.fromkeys(("model", "batch_size", "sequence_length")), method="full", torch_compile=False, strategy="none", launcher="auto", **changes
    )
    folder = scratch / name
    folder.mkdir(exist_ok=True)
    return ObserverContext(expected=parse_expectations(document), scratch=folder)

def note(control, bench, id_, seen):
    one = next(one for one in select_checks(bench.expected) if one.id == id_)
    found = judge(one, bench.expected, seen, ObservationLog(frozenset({id_})))
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

same = plain.memo["recipe"]
plain.memo["recipe"] = replace(same, seed=same.seed + 1)
note("another seed", plain, "R04", {**seen, **training["R04"](plain)})
plain.memo["recipe"] = same
note("the same seed", plain, "R04", {**seen, **training["R04"](plain)})

if "datasets" in sys.argv[4:]:
    import datasets
    load = datasets.load_from_disk
    datasets.load_from_disk = lambda folder: load(folder).select(range(2))
    document["packages"].append({"name": "datasets", "version": "1"})
    rows = bench_of("rows")
    note("a row that is lost", rows, "R10", training["R10"](rows))
    datasets.load_from_disk = load

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
def adapted(control, one):
    folder = still.scratch / control.replace(" ", "-")
    folder.mkdir()
    found = adapter.train_adapter(one, folder, quantized=False)
    document["training"]["method"] = "lora"
    bench = ObserverContext(expected=parse_expectations(document), scratch=still.scratch)
    note(control, bench, "R12", {f"train.adapter_{name}": value for name, value in found.items()})

if "peft" in sys.argv[4:]:
    import peft
    adapted("an adapter that learns", Recipe.of(still.expected))
    adapted("an adapter that does not learn", recipe)
    with_adapter, save = peft.get_peft_model, peft.PeftModel.save_pretrained
    peft.get_peft_model = lambda *given, **named: with_adapter(*given, **named).requires_grad_(True)
    adapted("an adapter whose base is trained", Recipe.of(still.expected))
    peft.get_peft_model = with_adapter
    def zeroed(self, *given, **named):
        self.base_model.model.model.layers[0].self_attn.q_proj.lora_B["default"].weight.data.zero_()
        save(self, *given, **named)
        self.base_model.model.model.layers[0].self_attn.q_proj.lora_B["default"].weight.data.fill_(1.0)
    peft.PeftModel.save_pretrained = zeroed
    adapted("an adapter that is saved otherwise", Recipe.of(still.expected))
print("\\n" + json.dumps(told))
"""  # noqa: E501
FAILS = {
    "a layer that is frozen": "weights are not updated: model.layers.1.self_attn.q_proj.weight; model.layers.1.",  # noqa: E501
    "a batch that is spread over two cards": "across 2 GPUs with DataParallel",
    "workers that never start": "dataloader_workers is 0, but 2 is declared",
    "a checkpoint that is not used": "took 40 steps instead of the 20",
    "another seed": "a second run with the same seed gives different weights",
    "sgd that does not learn": "did not learn",
    "another optimizer than declared": "optimizer is",
    "fp16 accepted without a GPU": "fp16 is not in effect: linear layers use float32",
    "options that are not in effect": "gradient_checkpointing is false, but true is declared",
    "optimizer.pt deleted": "optimizer.pt is missing",
    "rng_state.pth deleted": "rng_state.pth is missing",
    "resumed without optimizer.pt": "different weights",
    "resumed without rng_state.pth": "different weights",
    "model.safetensors truncated": "SafetensorError",
    "optimizer.pt truncated": "optimizer.pt: ",
    "trainer_state.json truncated": "JSONDecodeError",
}
HOLDS = (
    "a whole run learns",
    "precision of a whole run",
    "placement of a whole run",
    "a whole checkpoint",
    "resumed from a whole checkpoint",
    "the same seed",
)
LOCKED = ("torch", "transformers", "accelerate", "safetensors")


@pytest.fixture(scope="module")
def told(
    hf_python: str,
    probe: Path,
    document: Callable[..., dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, list[str]]:
    there = (
        "import importlib.util as u; print(*(name for name in ('peft', 'datasets') if "
        "u.find_spec(name)))"
    )
    found = subprocess.run([hf_python, "-c", there], capture_output=True, text=True)
    promised = json.dumps(document(packages=[{"name": name, "version": "1"} for name in LOCKED]))
    command = [
        hf_python,
        "-c",
        CONTROLS,
        str(probe),
        str(tmp_path_factory.mktemp("controls")),
        promised,
        *found.stdout.split(),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        env={**os.environ, "ACCELERATE_USE_CPU": "true"},
    )
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
    assert 'attention is "sdpa", but "flash_attention_2" is declared' in message
    assert 'optimizer is "torch.optim.adamw.AdamW", but "adafactor" is declared' in message


def test_rows_that_are_lost_on_disk_are_seen(told: dict[str, list[str]]) -> None:
    if "a row that is lost" not in told:
        pytest.skip("datasets is not in this environment")
    assert told["a row that is lost"] == ["fail", "rows changed during the round trip"]


@pytest.mark.parametrize(
    ("control", "status", "words"),
    [
        ("an adapter that learns", "pass", "gives the same results after a reload"),
        ("an adapter that does not learn", "fail", "does not learn"),
        ("an adapter whose base is trained", "fail", "changes the weights of the base model"),
        ("an adapter that is saved otherwise", "fail", "gives different results after a reload"),
    ],
)
def test_what_is_wrong_with_an_adapter_is_told(
    told: dict[str, list[str]], control: str, status: str, words: str
) -> None:
    if "an adapter that learns" not in told:
        pytest.skip("peft is not in this environment; tests/training/test_stacks.py has it")
    assert told[control][0] == status, told[control]
    assert words in told[control][1]


STARTED = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from provision_probe.probe.catalogue import select_checks
from provision_probe.probe.expectations import parse_expectations
from provision_probe.probe.judging import ObservationLog, judge
from provision_probe.probe.observing.launch import launch_readings, run_launcher
from provision_probe.probe.proofs.launch import Launch
from provision_probe.probe.proofs.rank_worker import shared_recipe
from provision_probe.probe.proofs.recipe import Recipe

launch = Launch(*json.loads(sys.argv[4]), "fp32", 0, True, True)
folder = Path(sys.argv[2])
recipe = shared_recipe(Recipe(), launch)
seen = launch_readings(run_launcher(launch, recipe, "trainer", folder, dict(os.environ)))
expected = parse_expectations(json.loads(sys.argv[3]))
one = next(one for one in select_checks(expected) if one.id == "R13")
seen["launch.by"] = launch.effective_launcher
found = judge(one, expected, seen, ObservationLog(frozenset({"R13"})))
print("\\n" + json.dumps([found.status.value, found.message]))
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("strategy", "launcher", "gpu", "words"),
    [
        (
            "fsdp",
            "accelerate",
            {"type": "L4", "count": 2},
            "wrapped in DistributedDataParallel, Joinable, not in FSDPModule",
        ),
        (
            "ddp",
            "python",
            {"type": None, "count": 0},
            "wrapped in nothing, not in DistributedDataParallel; 1 process ran",
        ),
        (
            "ddp",
            "torchrun",
            {"type": None, "count": 0},
            "each process of a program trains alone (parallel mode: not_parallel)",
        ),
    ],
)
def test_what_is_not_the_declared_strategy_fails(
    hf_python: str,
    probe: Path,
    document: Callable[..., dict[str, Any]],
    tmp_path: Path,
    strategy: str,
    launcher: str,
    gpu: dict[str, Any],
    words: str,
) -> None:
    """On a CPU accelerate makes plain ddp of fsdp, python starts one process, and Trainer without
    its variable ignores the processes of torchrun.
    """
    promised = document(packages=[{"name": name, "version": "1"} for name in LOCKED], gpu=gpu)
    rest = {
        **dict.fromkeys(("model", "batch_size", "sequence_length")),
        "method": "full",
        "torch_compile": False,
    }
    promised["training"] = {
        **promised["training"],
        **rest,
        "strategy": strategy,
        "launcher": launcher,
    }
    environ = {
        **os.environ,
        "ACCELERATE_USE_CPU": "false" if launcher == "torchrun" else "true",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    command = [
        hf_python,
        "-c",
        STARTED,
        str(probe),
        str(tmp_path),
        json.dumps(promised),
        json.dumps([strategy, launcher]),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, env=environ
    )
    assert done.returncode == 0, done.stderr[-2000:]
    status, message = json.loads(done.stdout.splitlines()[-1])
    assert status == "fail"
    assert words in message
