"""Targets of a first spec, by kind, with the fields that its GPU needs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from provision.commands.shared.spec_text_check import check_spec_text
from provision.diagnostics import Route, Severity
from provision.errors import UsageError
from provision.facts import Facts
from provision.imports.model import ImportedProject
from provision.imports.spec_text import STARTER_PYTHON, choose_gpu, provided_python
from provision.kinds import Gpu, registry_in_use
from provision.spelling import did_you_mean, nearest_words
from provision.target_facts import find_target_refusals

_PLACEHOLDER = "yours"


class StarterTargets(NamedTuple):
    """The GPU and the targets that were requested; None for what was not.

    Args:
        gpu: The GPU under the name that the facts have.
        targets: The fields of each target by its name, which is that of its kind.
        comments: The comment of each field, by its route.
    """

    gpu: str | None = None
    targets: Mapping[str, Mapping[str, Any]] | None = None
    comments: Mapping[Route, str] = {}

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The fields whose values a person has to replace."""
        return tuple(
            ".".join(map(str, route))
            for route, comment in self.comments.items()
            if comment.startswith(_PLACEHOLDER)
        )


def choose_targets(
    project: ImportedProject, kinds: Collection[str], gpu: str | None, facts: Facts
) -> StarterTargets:
    """Return targets of the named kinds for a GPU.

    Args:
        project: The content of imported files, whose GPU and targets count if no option names them.
        kinds: Names of kinds.
        gpu: The GPU; None for that of the files.
        facts: The tables to look up.

    Raises:
        UsageError: an unknown kind or GPU, or a target cannot have the GPU.
    """
    card = None if gpu is None else _parse_gpu(gpu, facts)
    name = None if card is None else str(card)
    if not kinds:
        return StarterTargets(name)
    named = card or Gpu.model_validate(choose_gpu(project, {}, None, facts).value)
    targets: dict[str, dict[str, Any]] = {}
    comments: dict[Route, str] = {}
    for word in dict.fromkeys(kinds):
        kind = registry_in_use.get().find(word)
        if kind is None:
            raise _unknown_kind(word)
        fields = kind.starter_fields(named, facts, conda=bool(project.conda_packages))
        targets[word] = {"kind": word, **{key: value.value for key, value in fields.items()}}
        for key, value in fields.items():
            comments["targets", word, key] = value.comment
        targets[word] |= _own_fields(project, word)
    _check_targets(str(named), targets, facts)
    return StarterTargets(name, targets, comments)


def _own_fields(project: ImportedProject, name: str) -> dict[str, Any]:
    """Return the fields that files have of a target with this name, such as Colab's runtime."""
    return {
        str(setting.route[2]): setting.value
        for setting in project.settings
        if setting.route[:2] == ("targets", name) and len(setting.route) == len(("", "", ""))
    }


def platform_of(gpu: str, facts: Facts) -> str:
    """Return the platform of the machines with a GPU in a spec's short form, such as L4:2."""
    if gpu == "mps":
        return "macos-arm64"
    card = facts.card(gpu.partition(":")[0])
    return (card.host if card else "") or "linux-x86_64"


def _explain_gpu_error(text: str, error: ValidationError) -> str:
    first = error.errors()[0]
    if first["type"] != "string_pattern_mismatch":
        return first["msg"]
    if not text.strip():
        return "it is empty"
    return "a GPU name can contain only letters, digits, dots, spaces, `_` and `-`"


def _parse_gpu(text: str, facts: Facts) -> Gpu:
    """Return a GPU under the name that the facts have.

    Raises:
        UsageError: not a GPU and a number, or a GPU that the facts do not have.
    """
    try:
        gpu = Gpu.model_validate(text)
    except ValidationError as error:
        raise UsageError(
            f"--gpu {shlex.quote(text)}: not a known GPU",
            why=_explain_gpu_error(text, error),
            hint="use a value such as L4 or A100-80GB:2, or none for CPU only",
        ) from None
    if gpu.type in ("none", "mps"):
        return gpu
    card = facts.card(gpu.type)
    if card is None:
        near = nearest_words(gpu.type, ("none", "mps", *(card.name for card in facts.cards)), 3)
        raise UsageError(
            f"unknown GPU {gpu.type}",
            why="the rules cannot check a GPU that provision does not know",
            hint=(f"did you mean {' or '.join(near)}? " if near else "")
            + "`provision facts list gpus` lists the known GPUs",
        )
    return Gpu(type=card.name, count=gpu.count)


def _unknown_kind(word: str) -> UsageError:
    names = [kind.name for kind in registry_in_use.get().kinds]
    near = did_you_mean(word, names)
    return UsageError(
        f"unknown target kind {word}", hint=f"{near} supported kinds: {', '.join(names)}".lstrip()
    )


def _check_targets(gpu: str, targets: Mapping[str, Mapping[str, Any]], facts: Facts) -> None:
    """Check that targets can have a GPU.

    Raises:
        UsageError: a target cannot.
    """
    python = provided_python(targets, gpu, facts) or STARTER_PYTHON
    packages = ["torch"]  # plan refuses a GPU that nothing can test
    document = {"gpu": gpu, "python": python, "packages": packages, "targets": targets}
    document["platforms"] = [platform_of(gpu, facts)]
    checked = check_spec_text(Path("starter.yaml"), json.dumps(document), facts)
    assert checked.spec is not None  # noqa: S101
    for name in targets:
        for refusal in find_target_refusals(checked.spec, name, facts):
            raise UsageError(refusal.why, why=_requested(gpu, name), hint=refusal.hint)
    for finding in checked.diagnostics:
        if finding.severity is Severity.ERROR:
            raise UsageError(finding.message, why=finding.why, hint=finding.help)


def _requested(gpu: str, target: str) -> str:
    return f"the target `{target}` was requested with the GPU {gpu}"
