"""How a training is started: the command and the files, read back by those who read them, and what
`export`, `run` and `apply` say.
"""

from __future__ import annotations

import faulthandler
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from provision.agent.probe.expectations import LAUNCHERS, STRATEGIES
from provision.agent.probe.proofs.launch import (
    Launch,
    accelerate_configuration,
    deepspeed_configuration,
    launch_command,
    launch_command_by_modules,
    to_yaml,
)
from provision.agent.probe.proofs.rank_worker import shared_recipe, stuck_frames
from provision.agent.probe.proofs.recipe import Recipe
from provision.commands.shared.launch import single_process_warning
from provision.views.exports import launch_files as texts
from provision.views.exports.launch_files import render_launch_command
from tests.rig import MINOR, Bench

# The keys at the top of DeepSpeed's "DeepSpeed Configuration JSON" page and in its ZeRO section, as
# far as we write them.
DEEPSPEED_KEYS = {
    "bf16",
    "fp16",
    "zero_optimization",
    "gradient_accumulation_steps",
    "gradient_clipping",
    "train_batch_size",
}
DEEPSPEED_KEYS |= {"train_micro_batch_size_per_gpu"}
ZERO_KEYS = {
    "stage",
    "overlap_comm",
    "contiguous_gradients",
    "reduce_bucket_size",
    "stage3_prefetch_bucket_size",
}
ZERO_KEYS |= {"stage3_param_persistence_threshold", "stage3_gather_16bit_weights_on_model_save"}


def launch(strategy: str = "ddp", launcher: str = "auto", gpus: int = 0, **changes: Any) -> Launch:
    return Launch(
        **{
            "strategy": strategy,
            "launcher": launcher,
            "precision": "bf16",
            "gpus": gpus,
            "trainer": True,
            "accelerate": True,
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (launch("none"), "python train.py"),
        (launch("none", "python", 4), "python train.py"),
        (
            launch("none", "torchrun", 4),
            "torchrun --standalone --local-addr=127.0.0.1 --nproc_per_node=4 train.py",
        ),
        (launch("ddp"), "torchrun --standalone --local-addr=127.0.0.1 --nproc_per_node=2 train.py"),
        (
            launch("ddp", gpus=8),
            "torchrun --standalone --local-addr=127.0.0.1 --nproc_per_node=8 train.py",
        ),
        (
            launch("ddp", "accelerate", 2),
            "accelerate launch --config_file accelerate.yaml train.py",
        ),
        (launch("fsdp", gpus=2), "accelerate launch --config_file accelerate.yaml train.py"),
        (
            launch("fsdp", gpus=2, accelerate=False),
            "torchrun --standalone --local-addr=127.0.0.1 --nproc_per_node=2 train.py",
        ),
        (
            launch("deepspeed-zero3", gpus=2),
            "accelerate launch --config_file accelerate.yaml train.py",
        ),
    ],
)
def test_the_launcher_follows_from_the_strategy(asked: Launch, words: str) -> None:
    assert " ".join(launch_command(asked)) == words


def test_processes_on_a_cpu_need_a_variable_outside_of_run() -> None:
    note = "# `provision run` sets it; elsewhere: export ACCELERATE_USE_CPU=true\n"
    assert render_launch_command(launch("ddp")).startswith(note + "torchrun")
    for other in (launch("ddp", gpus=2), launch("ddp", "accelerate"), launch("none")):
        assert note not in render_launch_command(other)


def test_the_check_starts_the_same_command_through_its_own_interpreter() -> None:
    for asked in (launch("ddp"), launch("ddp", "accelerate"), launch("none")):
        typed, here = (
            launch_command(asked, ("a.py",), "f.yaml"),
            launch_command_by_modules(asked, "/env/bin/python", ("a.py",), "f.yaml"),
        )
        options = typed[{"python": 1, "torchrun": 1, "accelerate": 2}[asked.effective_launcher] :]
        assert here[0] == "/env/bin/python"
        assert here[-len(options) :] == options


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("gpus", [0, 4])
def test_the_yaml_says_what_the_document_says(strategy: str, launcher: str, gpus: int) -> None:
    document = accelerate_configuration(launch(strategy, launcher, gpus))
    assert yaml.safe_load(to_yaml(document)) == document


def test_the_configuration_says_the_declared_strategy() -> None:
    kinds = {
        name: accelerate_configuration(launch(name, gpus=2))["distributed_type"]
        for name in STRATEGIES
    }
    assert kinds == {
        "none": "NO",
        "ddp": "MULTI_GPU",
        "fsdp": "FSDP",
        "deepspeed-zero2": "DEEPSPEED",
        "deepspeed-zero3": "DEEPSPEED",
    }
    assert [
        accelerate_configuration(launch(precision=name))["mixed_precision"]
        for name in ("fp32", "tf32", "fp16", "bf16")
    ] == ["no", "no", "fp16", "bf16"]
    assert (
        accelerate_configuration(launch("deepspeed-zero3", gpus=2))["deepspeed_config"][
            "zero_stage"
        ]
        == 3
    )


@pytest.mark.parametrize("stage", [2, 3])
def test_the_deepspeed_file_has_keys_that_deepspeed_documents(stage: int) -> None:
    document = deepspeed_configuration(launch(f"deepspeed-zero{stage}", gpus=2))
    assert document["zero_optimization"]["stage"] == stage
    assert set(document) <= DEEPSPEED_KEYS
    assert set(document["zero_optimization"]) <= ZERO_KEYS
    assert ("stage3_gather_16bit_weights_on_model_save" in document["zero_optimization"]) == (
        stage == 3
    )


def test_processes_together_take_the_batch_of_one() -> None:
    shared = shared_recipe(Recipe(optimizer="sgd", learning_rate=1.0, workers=2), launch())
    assert (shared.batch * shared.ranks, shared.dropout, shared.workers, shared.learning_rate) == (
        8,
        0.0,
        0,
        0.5,
    )
    assert shared_recipe(Recipe(device="cuda"), launch(gpus=16)).batch == 1


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (
            ("python", "main.py", "--x"),
            (
                "the spec is: torchrun --standalone --local-addr=127.0.0.1 --nproc_per_node=2 "
                "main.py --x"
            ),
        ),
        (("python3.11", "-m", "mine"), "the spec is: torchrun"),
        (("torchrun", "main.py"), ""),
        (("python", "-m", "torch.distributed.run", "main.py"), ""),
    ],
)
def test_one_process_for_a_strategy_is_said(argv: tuple[str, ...], says: str) -> None:
    said = single_process_warning(launch(), argv)
    assert (says in said) if says else not said
    assert (
        single_process_warning(launch("none"), argv)
        == single_process_warning(launch("ddp", "python"), argv)
        == ""
    )


def test_processes_that_wait_are_told_with_the_place(tmp_path: Path) -> None:
    def waiting_for_the_other() -> None:
        with (tmp_path / "rank-1.stack").open("w") as out:
            faulthandler.dump_traceback(out, all_threads=False)

    waiting_for_the_other()
    (tmp_path / "rank-0.stack").touch()
    (told,) = stuck_frames(tmp_path)
    assert told.startswith("rank-1 in test_launching.py:")
    assert told.endswith("waiting_for_the_other")


def spec(bench: Bench, training: str) -> None:
    bench.spec(
        f'gpu: none\npython: "{MINOR}"\npackages: [alpha]\ntraining: {{framework: none, '
        f"{training}}}\n"
    )


def test_export_run_and_apply_say_how_it_is_started(bench: Bench) -> None:
    spec(bench, "strategy: ddp, launcher: accelerate")
    made = bench.run("apply", "spec.yaml", "--yes")
    assert made.returncode == 0, made.stdout + made.stderr
    assert (
        "provision run spec.yaml --target local -- "
        "accelerate launch --config_file accelerate.yaml train.py"
    ) in made.stdout
    assert "provision export spec.yaml --format accelerate --out accelerate.yaml" in made.stdout
    out = bench.run("export", "spec.yaml", "--format", "accelerate", "--out", "accelerate.yaml")
    assert out.returncode == 0, out.stderr
    assert (
        bench.run(
            "export", "spec.yaml", "--format", "accelerate", "--out", "accelerate.yaml"
        ).returncode
        == 0
    ), "a file of ours is replaced"
    assert yaml.safe_load(
        (bench.folder / "accelerate.yaml").read_text()
    ) == accelerate_configuration(launch("ddp", "accelerate", precision="fp32"))
    said = bench.run("export", "spec.yaml", "--format", "launch").stdout
    assert said.splitlines()[-1] == "accelerate launch --config_file accelerate.yaml train.py"
    ran = bench.run("run", "spec.yaml", "--", "python", "-c", "print(7)")
    assert (ran.returncode, ran.stdout) == (0, "7\n")
    assert (
        "`strategy: ddp` needs one process for each device, but python starts only one"
        in ran.stderr
    )


def test_deepspeed_is_exported_where_it_is_declared_only(bench: Bench) -> None:
    spec(bench, "strategy: ddp")
    assert bench.run("lock", "spec.yaml").returncode == 0
    refused = bench.run("export", "spec.yaml", "--format", "deepspeed")
    assert refused.returncode == 2
    assert "declares `strategy: ddp`" in refused.stderr


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (launch("deepspeed-zero2", "torchrun", 2), 'TrainingArguments(deepspeed="deepspeed.json")'),
        (launch("fsdp", "torchrun", 2), 'TrainingArguments(fsdp="full_shard auto_wrap")'),
        (launch("fsdp", gpus=2), "provision export --format accelerate"),
    ],
)
def test_what_the_command_needs_besides_is_said(asked: Launch, says: str) -> None:
    *notes, words = texts.render_launch_command(asked).splitlines()
    assert says in " ".join(notes)
    assert words == " ".join(launch_command(asked))
    assert json.loads(texts.render_deepspeed_config(asked)) == deepspeed_configuration(asked)


READ = """
import sys
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
for file in sys.argv[1:]:
    read = load_config_from_file(file)
    print(read.distributed_type.value, read.num_processes, read.mixed_precision, read.use_cpu)
    try:
        load_config_from_file(file + ".odd")
        print("took a key that it does not know")
    except ValueError:
        print("refused")
"""


@pytest.mark.long
@pytest.mark.hf
def test_accelerate_reads_every_configuration(hf_python: str, tmp_path: Path) -> None:
    files = []
    for strategy in STRATEGIES:
        file = tmp_path / f"{strategy}.yaml"
        file.write_text(to_yaml(accelerate_configuration(launch(strategy, "accelerate", 2))))
        (tmp_path / f"{strategy}.yaml.odd").write_text(
            file.read_text() + "number_of_processes: 2\n"
        )
        files.append(str(file))
    done = subprocess.run(
        [hf_python, "-c", READ, *files],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    kinds = ("MULTI_GPU", "MULTI_GPU", "FSDP", "DEEPSPEED", "DEEPSPEED")
    assert done.stdout.split("\n")[::2][:5] == [f"{kind} 2 bf16 False" for kind in kinds]
    assert done.stdout.count("refused") == len(STRATEGIES)
