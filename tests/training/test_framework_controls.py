"""Negative controls on real jax and Keras: each breaks one thing, and its check fails."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.training.framework_stacks import STACKS, make_stack

pytestmark = [pytest.mark.long, pytest.mark.network]

# One process for each library, because importing is most of the cost. It prints the judgement of
# every control as one line of JSON.
CONTROLS = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from importlib import import_module
from pathlib import Path
from provision_probe.probe.catalogue import select_checks
from provision_probe.probe.context import ObserverContext
from provision_probe.probe.expectations import parse_expectations
from provision_probe.probe.judging import ObservationLog, judge
from provision_probe.probe.observing import array_libraries
from provision_probe.probe.observing import framework_resume, framework_training, frameworks
from provision_probe.probe.proofs import jax_loop, keras_data, keras_fit

scratch, document, name = Path(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4]
module, told = {"jax": jax_loop, "keras": keras_fit}[name], {}
OBSERVERS = {**frameworks.OBSERVERS, **framework_training.OBSERVERS, **framework_resume.OBSERVERS}

def bench_of(name, gpu=None, **changes):
    given = {**document, "training": {**document["training"], **changes}}
    if gpu:
        given["gpu"] = {"type": gpu, "count": 1}
    folder = scratch / name.replace(" ", "-")
    folder.mkdir()
    return ObserverContext(expected=parse_expectations(given), scratch=folder)

def note(control, bench, id_, seen):
    check = next(check for check in select_checks(bench.expected) if check.id == id_)
    found = judge(check, bench.expected, seen, ObservationLog(frozenset({id_})))
    told[control] = [found.status.value, found.message]

def observe(bench, *ids):
    seen = {}
    for id_ in ids:
        seen |= OBSERVERS[id_](bench)
    return seen

whole = bench_of("whole")
ids = ("J01", "J02", "J05", "J06", "J07", *(("J09",) if name == "keras" else ()), "J08")
seen = observe(whole, *ids)
for id_ in ids:
    note(f"{id_} of a whole run", whole, id_, seen)

# Both are told the truth about another declaration: the CPU was used although a GPU is declared.
note("the CPU in place of a GPU", bench_of("card", gpu="L4"), "J01", seen)
note("trained on the CPU in place of a GPU", bench_of("card 2", gpu="L4"), "J05", seen)
note("another precision than declared", bench_of("half", precision="bf16"), "J06", seen)

library = type(array_libraries.library_of(whole))
product = library.product
library.product = lambda self, left, right, kind: product(self, left, right, "bf16")
note("products in a shorter format", whole, "J02", {**seen, **observe(whole, "J02")})
library.product = product

seed, module.SEED = module.SEED, module.SEED + 1
note("another seed", whole, "J07", {**seen, **observe(whole, "J07")})
module.SEED = seed

restore = module.Run._restore
def without_optimizer(self, folder):
    number = restore(self, folder)
    if name == "jax":
        self.moments = [{key: value * 0 for key, value in part.items()} for part in self.moments]
    else:
        for variable in self.model.optimizer.variables:
            if "iteration" not in variable.path and "learning_rate" not in variable.path:
                variable.assign(variable * 0)
    return number
module.Run._restore = without_optimizer
note("resumed without the optimizer", whole, "J08", {**seen, **observe(whole, "J08")})
module.Run._restore = lambda self, folder: module.SAVE_AT
note("a checkpoint that is not used", whole, "J08", {**seen, **observe(whole, "J08")})
module.Run._restore = lambda self, folder: 0
note("a resume that starts again", whole, "J08", {**seen, **observe(whole, "J08")})
module.Run._restore = restore

for path in whole.scratch.rglob("state.json"):
    path.unlink()
note("a checkpoint without its state", whole, "J08", {**seen, **observe(whole, "J08")})

def broken_data(control, **changes):
    kept = {key: getattr(keras_data, key) for key in changes}
    for key, value in changes.items():
        setattr(keras_data, key, value)
    note(control, whole, "J09", {**seen, **observe(whole, "J09")})
    for key, value in kept.items():
        setattr(keras_data, key, value)

if name == "keras":
    import keras, tensorflow
    from tensorflow.python.framework import config
    dataset, pipeline = keras_data.make_dataset, keras_data.make_pipeline
    examples, started = keras_data.examples_of, []
    broken_data(
        "workers that are not started",
        _PATIENCE_S=0.1,
        make_dataset=lambda first, last, workers, meeting: dataset(first, last, 1, meeting),
    )
    broken_data(
        "workers that begin with the second batch",
        make_dataset=lambda first, last, *rest: dataset(first + 1, last + 1, *rest),
    )
    broken_data(
        "workers that make one batch twice",
        examples_of=lambda first, count: examples(
            first - count if first == 5 * count else first, count
        ),
    )
    broken_data(
        "a tf.data pipeline that leaves out a batch",
        make_pipeline=lambda first, last: pipeline(first + 1, last + 1),
    )
    broken_data(
        "a tf.data pipeline without its map",
        make_pipeline=lambda first, last: pipeline(first, last).map(lambda x, y: (x * 2, y)),
    )
    on = tensorflow.config.experimental.enable_op_determinism
    tensorflow.config.experimental.enable_op_determinism = lambda: None
    config.disable_op_determinism()
    note("a switch that does nothing", whole, "J07", {**seen, **observe(whole, "J07")})
    tensorflow.config.experimental.enable_op_determinism = on

rate, module._RATE = module._RATE, 0.0
still = bench_of("still")
note("a learning rate of 0", still, "J05", {**seen, **observe(still, "J05")})
module._RATE = rate
print("\\n" + json.dumps(told))
"""
FAILS = {
    "the CPU in place of a GPU": "runs on the cpu",
    "trained on the CPU in place of a GPU": "training ran on the cpu",
    "another precision than declared": "bf16 is not in effect: the layers use float32",
    "products in a shorter format": "fp32 matrix products",
    "another seed": "different weights",
    "resumed without the optimizer": "different weights",
    "a checkpoint that is not used": "different weights",
    "a resume that starts again": "different weights",
    "a checkpoint without its state": "state.json",
    "a learning rate of 0": "did not learn",
}
OF_DATA = {
    "workers that are not started": "a PyDataset with 2 workers produces only one batch at a time",
    "workers that begin with the second batch": "a PyDataset with 2 workers gives other weights",
    "workers that make one batch twice": "a PyDataset with 2 workers gives other weights",
    "a tf.data pipeline that leaves out a batch": "a tf.data pipeline gives other weights",
    "a tf.data pipeline without its map": "a tf.data pipeline gives other weights",
    "a switch that does nothing": "op_determinism was requested but is not in effect",
}
"""Controls of Keras only."""
WHOLE = " of a whole run"
LOCKED = {"jax": ("jax", "jaxlib"), "keras": ("keras", "tensorflow-cpu")}


@pytest.fixture(scope="module", params=("jax", "keras"))
def told(
    request: pytest.FixtureRequest,
    probe: Path,
    document: Callable[..., dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, list[str]]:
    """The judgement of each control, by its name."""
    name: str = request.param
    folder = make_stack(tmp_path_factory, name)
    backend = {"backend": STACKS[name].library} if name == "keras" else {}
    promised = document(packages=[{"name": package, "version": "1"} for package in LOCKED[name]])
    promised["training"] |= {
        "framework": name,
        **dict.fromkeys(("model", "batch_size", "sequence_length")),
        "method": "full",
        "torch_compile": False,
        "strategy": "none",
        "launcher": "auto",
        **backend,
    }
    command = [
        str(folder / ".provision/envs/stack.local/bin/python"),
        "-c",
        CONTROLS,
        str(probe),
        str(tmp_path_factory.mktemp("controls")),
        json.dumps(promised),
        name,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    answers: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return answers


def test_what_is_broken_fails_with_its_reason(
    told: dict[str, list[str]], subtests: pytest.Subtests
) -> None:
    fails = FAILS | (OF_DATA if "J09 of a whole run" in told else {})
    assert fails.keys() == {control for control in told if not control.endswith(WHOLE)}
    for control, reason in fails.items():
        with subtests.test(control):
            status, message = told[control]
            assert status == "fail", message
            assert reason in message


def test_what_is_whole_passes(told: dict[str, list[str]], subtests: pytest.Subtests) -> None:
    whole = {control for control in told if control.endswith(WHOLE)}
    assert len(whole) >= 6
    for control in whole:
        with subtests.test(control):
            status, message = told[control]
            assert status == "pass", message
