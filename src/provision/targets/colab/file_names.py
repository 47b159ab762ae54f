"""File names of a Colab target."""

from __future__ import annotations

import shlex
from pathlib import PurePath

from provision.kinds import ColabTarget
from provision.spelling import format_command
from provision.targets.context import TargetContext

CELL_SUFFIX, NOTEBOOK_SUFFIX, PAYLOAD_SUFFIX = ".colab.py", ".ipynb", ".payload"


def get_colab_target(context: TargetContext) -> ColabTarget:
    """Return the target of a context; the registry selects drivers by kind."""
    target = context.spec.targets[context.target]
    assert isinstance(target, ColabTarget)  # noqa: S101
    return target


def build_file_stem(context: TargetContext) -> str:
    """Return the stem of a target's files; it names the target if there are several."""
    targets = context.lock.inputs.get("targets", {}).values()
    several = sum(str(inputs).split(" ", 1)[0] == "colab" for inputs in targets) > 1
    return f"{context.stem}.{context.target}" if several else context.stem


def build_render_command(context: TargetContext, spec_file: str, url: str = "") -> str:
    """Return the command that renders the files again, for the folder of the spec.

    `apply` also brings the payload into the bucket, and checks that it can be fetched.
    """
    is_apart = get_colab_target(context).payload_place != "embedded"
    apart = f" --payload-url {shlex.quote(url)}" if url else ""
    verb = "apply" if is_apart and not url else "render"
    return format_command(verb, PurePath(spec_file), context.target) + apart
