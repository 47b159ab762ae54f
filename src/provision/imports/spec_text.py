"""Writes the content of imported files as a spec that a person can read and change."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Mapping
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from provision.diagnostics import Route, Span
from provision.facts import Facts, load_facts
from provision.facts.versions import admitted_versions
from provision.imports.conda_names import list_names
from provision.imports.model import ImportedProject, Leftover, Setting
from provision.imports.spec_check import package_data, set_value
from provision.kinds import registry_in_use
from provision.kinds.base import Kind, ProvidedSoftware, TargetModel
from provision.sanitize import escape_line
from provision.source.nodes import resolve_scalar
from provision.source.yaml_scalars import format_scalar, quote_scalar
from provision.spec import API_VERSION

STARTER_PYTHON = "3.11"
"""The Python of templates/spec.yaml."""
_ORDER = (
    *("apiVersion", "name", "gpu", "cuda", "python", "packages", "conda_packages", "indexes"),
    *("system_packages", "env", "paths", "requires", "training", "targets"),
)
_QUOTED = ("cuda", "python", "runtime")
_PLAIN_LINE = re.compile(r"[A-Za-z](?:[A-Za-z0-9._<>=!~+*,\[\]/:-]*[A-Za-z0-9._<>=!~+*,\]/-])?")
"""Text that is a plain scalar outside of flow collections: without blanks, #, quotes and braces."""


class Assumption(NamedTuple):
    """The value of a field, and why it was chosen; the reason is "" if a file names the value."""

    value: str
    reason: str = ""


class WrittenSpec(NamedTuple):
    """A spec and where its values come from.

    Args:
        text: The YAML.
        spans: The original text of each value, by its route in the spec.
        assumptions: Values that no file names, by their field.
        leftovers: What the targets of the spec cannot have.
    """

    text: str
    spans: Mapping[Route, Span]
    assumptions: Mapping[str, Assumption] = {}
    leftovers: tuple[Leftover, ...] = ()


def write_spec(
    project: ImportedProject,
    targets: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    gpu: str | None = None,
    python: str = "",
    platform: str = "",
    built: Container[str] = (),
    comments: Mapping[Route, str] = {},
) -> WrittenSpec:
    """Return a spec with the content of files.

    Args:
        project: The merged content.
        targets: The targets of the spec by name, instead of those in the files.
        gpu: The GPU, instead of that in the files.
        python: The Python, unless the files name another one or a range without it; "" for none.
        platform: The only platform; "" for the default.
        built: Canonical names of the packages that may be built from source.
        comments: A comment for the line of a route, such as ("targets", "colab", "runtime").
    """
    facts = load_facts()
    is_replaced = {"targets": targets is not None, "gpu": gpu is not None}
    settings = [one for one in project.settings if not is_replaced.get(str(one.route[0]))]
    chosen: dict[Route, Setting] = {setting.route: setting for setting in settings}
    document: dict[str, Any] = {"apiVersion": API_VERSION}
    spans = {setting.route: setting.span for setting in settings}
    for setting in settings:
        set_value(document, setting)
    if targets is not None:
        document["targets"] = {name: dict(target) for name, target in targets.items()}
    if project.conda_packages and "targets" not in document:
        document["targets"] = {"local": {"kind": "local", "manager": "conda"}}
    has_conda = uses_conda(document.get("targets", {}))
    fields: dict[str, dict[str, Any]] = document.get("targets", {})
    card = choose_gpu(project, fields, gpu, facts)
    found = fields if targets is None else {}
    runtimes = _choose_runtimes(found, _allowed_pythons(project, chosen, facts), facts)
    for name, runtime in runtimes.items():
        fields[name]["runtime"] = runtime.value
    chosen_python = _choose_python(project, chosen, fields, card.value, facts, python)
    document["gpu"], document["python"] = card.value, chosen_python.value
    if platform:
        document["platforms"] = [platform]
    _add_packages(document, spans, project, built)
    if project.conda_packages and has_conda:
        _add_conda_packages(document, spans, project)
    if project.indexes:
        document["indexes"] = {name: {"url": url} for name, url in project.indexes.items()}
    choices = {"gpu": card, "python": chosen_python}
    assumptions = {field: choice for field, choice in choices.items() if choice.reason}
    for field in assumptions:
        spans.pop((field,), None)
    reasons: dict[Route, str] = {(field,): choice.reason for field, choice in assumptions.items()}
    for name, runtime in runtimes.items():
        assumptions[f"targets.{name}.runtime"] = runtime
        reasons["targets", name, "runtime"] = runtime.reason
    lines = _lines(document, {**comments, **reasons}, project)
    leftovers = () if has_conda else _conda_leftovers(project)
    return WrittenSpec("".join(lines), spans, assumptions, leftovers)


def _add_packages(
    document: dict[str, Any],
    spans: dict[Route, Span],
    project: ImportedProject,
    built: Container[str],
) -> None:
    document["packages"] = [
        package_data(package, is_built=package.name in built) for package in project.packages
    ]
    for number, package in enumerate(project.packages):
        spans["packages", number] = package.span
        if package.index is not None:
            spans.setdefault(("indexes", package.index), package.span)


def _add_conda_packages(
    document: dict[str, Any], spans: dict[Route, Span], project: ImportedProject
) -> None:
    document["conda_packages"] = [package.requirement for package in project.conda_packages]
    for number, package in enumerate(project.conda_packages):
        spans["conda_packages", number] = package.span


def _conda_leftovers(project: ImportedProject) -> tuple[Leftover, ...]:
    """Return the packages of conda that no target of the spec can have, as one leftover."""
    if not project.conda_packages:
        return ()
    return (
        Leftover(
            project.conda_packages[0].span,
            f"{list_names(project.conda_packages)}: left out",
            "only conda channels have them, but no target in the spec uses conda",
            "add them to `conda_packages`, and add a target with `{kind: local, manager: conda}`",
        ),
    )


def uses_conda(targets: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether conda makes the environment of a target."""
    return any(kind.uses_conda(target) for _, kind, target in _validate_targets(targets))


def _validate_targets(
    targets: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, Kind, TargetModel]]:
    """Yield the name, the kind and the model of each target whose kind exists."""
    registry = registry_in_use.get()
    for name, fields in targets.items():
        kind = registry.find(fields.get("kind"))
        if kind is not None:
            yield name, kind, kind.model.model_validate(dict(fields))


def provided_python(targets: Mapping[str, Mapping[str, Any]], gpu: str, facts: Facts) -> str:
    """Return the one Python that the machines of the targets bring, "" if they bring others."""
    pythons = {
        software.python.value
        for software in provided_software(targets, gpu, facts)
        if software.python is not None
    }
    return pythons.pop() if len(pythons) == 1 else ""


def provided_software(
    targets: Mapping[str, Mapping[str, Any]], gpu: str, facts: Facts
) -> Iterator[ProvidedSoftware]:
    """Yield what the machines of the targets bring."""
    for name, kind, target in _validate_targets(targets):
        has_card = str(targets[name].get("gpu", gpu)) not in ("none", "mps")
        yield kind.provides(target, ("targets", name), facts, gpu=has_card)


def choose_gpu(
    project: ImportedProject,
    targets: Mapping[str, Mapping[str, Any]],
    gpu: str | None,
    facts: Facts,
) -> Assumption:
    """Return the GPU that is named; else the first target's, or one for a CUDA build, or none."""
    if gpu is not None:
        return Assumption(gpu)
    settings = {setting.route: setting for setting in project.settings}
    if ("gpu",) in settings:
        return Assumption(str(settings["gpu",].value))
    own = [target["gpu"] for target in targets.values() if "gpu" in target]
    if targets and len(own) == len(targets):
        return Assumption(str(own[0]))
    cuda = settings.get(("cuda",))
    if project.needs_cuda or (cuda is not None and cuda.value != "none"):
        free = facts.conditions["free GPU"].value
        return Assumption(
            free, "no file names the GPU for this CUDA build: replace this GPU with yours"
        )
    return Assumption("none", "no file names a GPU: replace this value with your GPU, such as L4")


def _choose_python(
    project: ImportedProject,
    settings: Mapping[Route, Setting],
    targets: Mapping[str, Mapping[str, Any]],
    gpu: str,
    facts: Facts,
    preferred: str,
) -> Assumption:
    """Return the Python that is named; else `preferred`, or one that fits.

    Of several that fit, it is the one nearest to the starter spec's.
    """
    named = settings.get(("python",))
    if named is not None and str(named.value)[:1].isdigit():
        return Assumption(str(named.value))
    candidates = _candidates(named, facts)
    reason = "no file names a Python version"
    if named is not None:
        reason = f"the files allow {named.value}"
    if preferred and (named is None or preferred in candidates):
        return Assumption(preferred, "the target comes with this one")
    fitting = [python for python in candidates if python in _pythons_of_torch(project, facts)]
    provided = provided_python(targets, gpu, facts)
    if provided in (fitting or candidates):
        return Assumption(provided, f"{reason}; the targets come with this one")
    older = [python for python in fitting or candidates if _minor(python) <= _minor(STARTER_PYTHON)]
    chosen = older[-1] if older else (fitting or candidates)[0]
    if fitting and (provided or (chosen != STARTER_PYTHON and named is None)):
        reason += "; torch has wheels for this one"
        reason += f", not for {provided} of the targets" if provided else ""
    return Assumption(chosen, reason)


def _candidates(named: Setting | None, facts: Facts) -> list[str]:
    """Return the known Pythons that the range in the files admits."""
    known = [row.version for row in facts.pythons]
    return known if named is None else _admitted(known, str(named.value)) or known


def _allowed_pythons(
    project: ImportedProject, settings: Mapping[Route, Setting], facts: Facts
) -> list[str]:
    """Return the Python that the files name, else those in their range that torch has wheels for.

    Without such a Python, the range alone counts.
    """
    named = settings.get(("python",))
    if named is not None and str(named.value)[:1].isdigit():
        return [str(named.value)]
    candidates, with_torch = _candidates(named, facts), _pythons_of_torch(project, facts)
    return [python for python in candidates if python in with_torch] or candidates


def _choose_runtimes(
    targets: Mapping[str, Mapping[str, Any]], pythons: Container[str], facts: Facts
) -> dict[str, Assumption]:
    """Return the newest runtime with one of the Pythons, for each target whose own has another."""
    chosen: dict[str, Assumption] = {}
    dated = sorted(name for name in facts.runtimes if name != "latest")
    fitting = [facts.runtimes[name] for name in dated if facts.runtimes[name].minor in pythons]
    for name, kind, target in _validate_targets(targets):
        own = kind.provides(target, ("targets", name), facts, gpu=False).runtime
        is_free = kind.has_runtimes and not {"runtime", "isolation"} & set(targets[name])
        if is_free and own is not None and own.minor not in pythons and fitting:
            newest = fitting[-1]
            reason = f"the newest with Python {newest.minor}; the current one has {own.minor}"
            chosen[name] = Assumption(newest.runtime, reason)
    return chosen


def _minor(python: str) -> int:
    return int(python.partition(".")[2])


def _admitted(pythons: list[str], specifiers: str) -> list[str]:
    admitted = SpecifierSet(specifiers)
    return [
        python
        for python in pythons
        if any(admitted.contains(f"{python}.{patch}") for patch in range(30))
    ]


def _pythons_of_torch(project: ImportedProject, facts: Facts) -> tuple[str, ...]:
    """Return the Pythons for which the admitted torch releases have wheels."""
    pythons: list[str] = []
    for package in project.packages:
        if package.name == "torch":
            specifier = Requirement(package.requirement).specifier
            admitted = admitted_versions(specifier, [row.release for row in facts.torch])
            for row in facts.torch:
                if row.release in admitted:
                    pythons += row.pythons
    return tuple(pythons)


def _lines(
    document: Mapping[str, Any],
    comments: Mapping[Route, str],
    project: ImportedProject,
) -> Iterator[str]:
    """Yield the lines of the YAML."""
    files = dict.fromkeys(text.file for text in project.texts.values())
    if files:
        yield f"# Imported from {escape_line(', '.join(files))}\n"
    for key in (*_ORDER, *(key for key in document if key not in _ORDER)):
        if key not in document:
            continue
        value = document[key]
        if isinstance(value, dict | list):
            yield "\n"
        yield from format_entry((key,), value, comments)


def format_entry(route: Route, value: Any, comments: Mapping[Route, str]) -> Iterator[str]:
    """Yield the lines of the last key of a route with its value, and the comments of routes."""
    key, margin = str(route[-1]), "  " * (len(route) - 1)
    comment = f" # {escape_line(comments[route])}" if comments.get(route) else ""
    head = f"{margin}{format_scalar(key)}:"
    if isinstance(value, list) and key in ("packages", "conda_packages") and value:
        yield f"{head}{comment}\n"
        for item in value:
            text = _format_line(item) if isinstance(item, str) else format_flow(item)
            yield f"{margin}  - {text}\n"
    elif isinstance(value, dict) and value:
        yield f"{head}{comment}\n"
        for name, item in value.items():
            yield from format_entry((*route, str(name)), item, comments)
    elif key in _QUOTED and isinstance(value, str) and value[:1].isdigit():
        yield f"{head} {quote_scalar(value)}{comment}\n"
    elif isinstance(value, str):
        yield f"{head} {_format_line(value)}{comment}\n"
    else:
        yield f"{head} {format_flow(value)}{comment}\n"


def _format_line(text: str) -> str:
    """Return text as a scalar in a block list or after a key, quoted only if necessary."""
    is_plain = _PLAIN_LINE.fullmatch(text) and isinstance(resolve_scalar(text)[0], str)
    return text if is_plain else format_scalar(text)


def format_flow(value: Any) -> str:
    """Return data as YAML on one line."""
    if isinstance(value, dict):
        entries = (f"{format_scalar(str(key))}: {format_flow(item)}" for key, item in value.items())
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(format_flow, value)) + "]"
    return format_scalar(value) if isinstance(value, str) else json.dumps(value)
