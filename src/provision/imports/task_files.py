"""Reads tasks of SkyPilot and dstack: the GPU, the image, and what their commands install."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from provision.diagnostics import Span
from provision.imports.conda_files import add_name
from provision.imports.images import add_image
from provision.imports.quoting import quote_text
from provision.imports.scripts import add_script
from provision.imports.shell import ShellCommand
from provision.imports.tool_content import ToolContent
from provision.imports.yaml_content import (
    find_value,
    key_span,
    list_entries,
    list_items,
    read_commands,
    read_text,
    read_yaml,
)
from provision.source.nodes import LocatedValue, Sequence

if TYPE_CHECKING:
    from provision.imports.model import ImportContext, ImportedFile

_SKY_KEYS = frozenset(("name", "resources", "envs", "secrets", "setup", "run", "workdir"))
_SKY_RESOURCES = frozenset(("accelerators", "image_id", "memory"))
_DSTACK_KEYS = frozenset(
    ("type", "name", "python", "image", "env", "commands", "init", "setup", "resources", "nvcc")
)
_DSTACK_RESOURCES = frozenset(("gpu", "memory", "shm_size"))
_ACCELERATOR = re.compile(r"([A-Za-z][A-Za-z0-9._-]*)(?::(\d{1,2}))?")
_GPU_MEMORY = re.compile(r"\d+(?:\.\d+)?\s*[GT]i?B?(?:\.\..*)?|\.\..*", re.IGNORECASE)
_GPU_COUNT = re.compile(r"(\d{1,2})(?:\.\.\d*)?")
_SIZE = re.compile(r"(\d+)(?:\.\d+)?\s*([GMT])?i?B?(?:\+|\.\..*)?", re.IGNORECASE)


def read_skypilot(path: Path, text: str, context: ImportContext) -> ImportedFile:
    """Return the content of a task of SkyPilot."""
    documents, content = read_yaml(path, text, "SkyPilot task")
    for root in documents:
        name = find_value(root, "name")
        add_name(read_text(name), name, content)
        _read_sky_resources(find_value(root, "resources"), content)
        variables = _read_variables(find_value(root, "envs"), content)
        for variable, value in list_entries(find_value(root, "secrets")):
            _add_secret(variable, value, content)
        for key in ("setup", "run"):
            script = find_value(root, key)
            if script is not None:
                commands, file = read_commands(script), script.node.text
                is_setup = key == "setup"
                add_script(content, commands, file, key, variables=variables, is_setup=is_setup)
        _note_others(root, _SKY_KEYS, "task", content)
    return content.finish(path.parent, context)


def _read_sky_resources(resources: LocatedValue | None, content: ToolContent) -> None:
    if resources is None:
        return
    choices = _list_accelerators(find_value(resources, "accelerators"))
    for key in ("any_of", "ordered"):
        for part in list_items(find_value(resources, key)):
            choices += _list_accelerators(find_value(part, "accelerators"))
    _add_accelerators(choices, content)
    image = find_value(resources, "image_id")
    if image is not None and (name := read_text(image)) is not None:
        add_image(name, image.at.span, content)
    _add_size(find_value(resources, "memory"), "ram", content)
    _note_others(resources, _SKY_RESOURCES, "resources", content)


def _list_accelerators(value: LocatedValue | None) -> list[tuple[str, Span]]:
    """Return the accelerators of a text, a list or a mapping of names to counts."""
    if value is None:
        return []
    found = [(text, part.at.span) for part in list_items(value) if (text := read_text(part))]
    for name, count in list_entries(value):
        found.append((f"{name}:{read_text(count) or 1}", key_span(count)))
    return found


def _add_accelerators(choices: list[tuple[str, Span]], content: ToolContent) -> None:
    """Add the first accelerator that is a GPU; a spec names one."""
    for index, (text, span) in enumerate(choices):
        match = _ACCELERATOR.fullmatch(text.strip())
        if index > 0:
            content.leave(
                span,
                f"the accelerator {quote_text(text)} was left out",
                "it is an alternative, but a spec names only one GPU",
                "set `gpu` in the spec to the GPU you want",
            )
        elif match is None or match[1].lower().startswith("tpu"):
            content.leave(
                span,
                f"the accelerator {quote_text(text)} was left out",
                "a spec can only be for GPUs or CPUs",
            )
        else:
            count = f":{match[2]}" if match[2] and int(match[2]) > 1 else ""
            content.set(("gpu",), f"{match[1]}{count}", span)


def _add_size(value: LocatedValue | None, requirement: str, content: ToolContent) -> None:
    """Add the least memory of the machine, in GB if it has no unit."""
    text = read_text(value)
    match = _SIZE.fullmatch(text.strip()) if text else None
    if value is not None and match is not None:
        size = f"{match[1]}{(match[2] or 'G').upper()}B"
        content.set(("requires", requirement), size, value.at.span)
    elif value is not None and text is not None:
        content.leave(
            value.at.span,
            f"the size {quote_text(text)} was left out",
            help=f"set it in the spec, for example `requires: {{{requirement}: 16GiB}}`",
        )


def _read_variables(value: LocatedValue | None, content: ToolContent) -> dict[str, str]:
    """Add variables of a mapping, or of a list of NAME=value, and return those that are known."""
    pairs = [(name, read_text(part), part) for name, part in list_entries(value)]
    if value is not None and isinstance(value.node, Sequence):
        for part in list_items(value):
            key, equals, written = (read_text(part) or "").partition("=")
            pairs.append((key, written if equals else None, part))
    known = {}
    for name, text, part in pairs:
        if text is None:
            _add_secret(name, part, content)
        else:
            content.add_variable(name, text, part.at.span)
            known[name] = text
    return known


def _add_secret(name: str, value: LocatedValue, content: ToolContent) -> None:
    content.leave(
        key_span(value),
        f"the value of {quote_text(name)} is not in the spec",
        "it is set when the task starts, or is a secret",
        f"add `secrets: {{{quote_text(name)}: {{env: {quote_text(name)}}}}}` to the spec",
    )


def _note_others(
    value: LocatedValue, known: frozenset[str], name: str, content: ToolContent
) -> None:
    """Note the keys that a spec has no field for, all of them in one line."""
    others = [(key, child) for key, child in list_entries(value) if key not in known]
    others = [(key, child) for key, child in others if key not in ("any_of", "ordered")]
    if others:
        names = ", ".join(quote_text(key) for key, _ in others)
        content.leave(
            key_span(others[0][1]),
            f"these keys of the {name} were left out: {names}",
            "they describe how and where the program runs, not its environment",
        )


def read_dstack(path: Path, text: str, context: ImportContext) -> ImportedFile:
    """Return the content of a configuration of dstack."""
    documents, content = read_yaml(path, text, "dstack configuration")
    for root in documents:
        name = find_value(root, "name")
        add_name(read_text(name), name, content)
        python = find_value(root, "python")
        if python is not None and (version := read_text(python)):
            content.add_python(version, python.at.span)
        image = find_value(root, "image")
        if image is not None and (image_name := read_text(image)):
            add_image(image_name, image.at.span, content)
        resources = find_value(root, "resources")
        if resources is not None:
            _read_dstack_gpu(find_value(resources, "gpu"), content)
            _add_size(find_value(resources, "memory"), "ram", content)
            _add_size(find_value(resources, "shm_size"), "shm", content)
            _note_others(resources, _DSTACK_RESOURCES, "resources", content)
        variables = _read_variables(find_value(root, "env"), content)
        for key in ("setup", "init", "commands"):
            commands: list[ShellCommand] = []
            for line in list_items(find_value(root, key)):
                commands += read_commands(line)
            is_setup = key != "commands"
            add_script(
                content, commands, root.node.text, key, variables=variables, is_setup=is_setup
            )
        nvcc = find_value(root, "nvcc")
        if nvcc is not None and read_text(nvcc) == "true":
            content.leave(
                key_span(nvcc),
                "the version of nvcc is unknown",
                help='set it in the spec, for example `cuda_toolkit: "12.4"`',
            )
        _note_others(root, _DSTACK_KEYS, "configuration", content)
    return content.finish(path.parent, context)


def _read_dstack_gpu(value: LocatedValue | None, content: ToolContent) -> None:
    """Read a GPU such as `A100:80GB:2`, `24GB` or {name: [L4, A10G], count: 1}."""
    if value is None:
        return
    text = read_text(value)
    names: list[tuple[str, Span]] = []
    memory, count = "", "1"
    if text is not None:
        for part in text.replace(" ", "").split(":"):
            if _GPU_MEMORY.fullmatch(part):
                memory = part
            elif match := _GPU_COUNT.fullmatch(part):
                count = match[1]
            else:
                names += [(name, value.at.span) for name in part.split(",") if name]
    else:
        names = [
            (name, part.at.span)
            for part in list_items(find_value(value, "name"))
            if (name := read_text(part))
        ]
        memory = read_text(find_value(value, "memory")) or ""
        match = _GPU_COUNT.fullmatch(read_text(find_value(value, "count")) or "1")
        count = match[1] if match else "1"
    if not names:
        content.leave(
            value.at.span,
            "the configuration requires a GPU, but does not name one",
            "dstack chooses a GPU by its memory",
            "set it in the spec, for example `gpu: L4`",
        )
    # A100 and H100 exist with several sizes of memory, which are part of their name in a spec.
    size = re.fullmatch(r"(40|80|141)GB(?:\.\..*)?", memory)
    suffix = f"-{size[1]}GB" if size else ""
    choices = [
        (f"{name}{suffix if name in ('A100', 'H100', 'H200') else ''}:{count}", span)
        for name, span in names
    ]
    _add_accelerators(choices, content)
