"""The start of a training as files of accelerate and DeepSpeed and as a command."""

from __future__ import annotations

import json
import shlex

from provision.agent.probe.proofs.launch import (
    DEEPSPEED_FILE,
    Launch,
    accelerate_configuration,
    deepspeed_configuration,
    to_yaml,
)
from provision.agent.probe.proofs.launch import launch_command as words_of
from provision.views.exports import MADE_BY


def render_accelerate_config(launch: Launch) -> str:
    """Return the file that `accelerate launch --config_file` reads."""
    return (
        f"# {MADE_BY} --format accelerate`: change the spec, and export "
        f"again.\n{to_yaml(accelerate_configuration(launch))}"
    )


def render_deepspeed_config(launch: Launch) -> str:
    """Return DeepSpeed's file.

    It does not name its origin: JSON has no comments, and DeepSpeed refuses unknown keys.
    """
    return json.dumps(deepspeed_configuration(launch), indent=2) + "\n"


def render_launch_command(launch: Launch) -> str:
    """Return the command, after comments about the files and arguments that it needs."""
    notes = []
    if launch.effective_launcher == "accelerate":
        notes.append(
            "# accelerate.yaml: provision export --format accelerate --out accelerate.yaml"
        )
    elif launch.zero_stage:
        notes.append(
            f"# {DEEPSPEED_FILE}: provision export --format deepspeed --out {DEEPSPEED_FILE}"
        )
        notes.append(f'# in the program: TrainingArguments(deepspeed="{DEEPSPEED_FILE}")')
    elif launch.strategy == "fsdp" and launch.trainer:
        notes.append('# in the program: TrainingArguments(fsdp="full_shard auto_wrap")')
    if launch.needs_cpu_variable:
        notes.append("# `provision run` sets it; elsewhere: export ACCELERATE_USE_CPU=true")
    return "\n".join((*notes, shlex.join(words_of(launch)))) + "\n"
