"""Removes what a spec cannot contain from the content of imported files."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from provision.diagnostics import Route
from provision.imports.model import ImportedPackage, ImportedProject, Leftover, Setting
from provision.kinds import registry_in_use
from provision.spec import Spec

_ROUNDS = 3
"""Removing a value can uncover another error; more than one uncovered round was not seen."""


def remove_invalid(project: ImportedProject) -> ImportedProject:
    """Return a project whose packages and settings are valid in a spec.

    What is not valid is a leftover with the reason.
    """
    for _ in range(_ROUNDS):
        try:
            Spec.model_validate(to_document(project), context=registry_in_use.get())
        except ValidationError as error:
            project = _without_errors(project, error)
        else:
            break
    return project


def to_document(project: ImportedProject) -> dict[str, Any]:
    """Return the content as the data of a spec, with a GPU and a Python if it names none."""
    document: dict[str, Any] = {
        "gpu": "none",
        "python": "3.11",
        "packages": [package_data(package) for package in project.packages],
        "conda_packages": [package.requirement for package in project.conda_packages],
        "indexes": {name: {"url": url} for name, url in project.indexes.items()},
    }
    for setting in project.settings:
        if setting.route == ("python",) and not str(setting.value)[:1].isdigit():
            continue
        set_value(document, setting)
    return document


def package_data(package: ImportedPackage, *, is_built: bool = False) -> str | dict[str, Any]:
    """Return a package as an item of `packages`.

    It is a line, or a mapping if it names an index or is built from source.
    """
    if package.index is None and not is_built and not package.source:
        return package.requirement
    from packaging.requirements import Requirement

    requirement = Requirement(package.requirement)
    fields: dict[str, Any] = {"name": requirement.name}
    if requirement.specifier:
        fields["version"] = str(requirement.specifier)
    if requirement.extras:
        fields["extras"] = sorted(requirement.extras)
    if requirement.marker:
        fields["marker"] = str(requirement.marker)
    if package.index is not None:
        fields["index"] = package.index
    fields |= dict(package.source)
    if not is_built and fields.keys() == {"name", "path"} and fields["path"].endswith(".whl"):
        return str(fields["path"])
    return {**fields, "build": True} if is_built else fields


def set_value(document: dict[str, Any], setting: Setting) -> None:
    """Set the value at the route of a setting; a number in the route adds to a list."""
    *parents, last = setting.route
    value: Any = document
    for part, following in zip(parents, setting.route[1:], strict=True):
        value = value.setdefault(part, [] if isinstance(following, int) else {})
    if isinstance(value, list):
        value.append(setting.value)
    else:
        value[last] = setting.value


def _without_errors(project: ImportedProject, error: ValidationError) -> ImportedProject:
    """Return a project without the values that errors are about."""
    problems: dict[Route, str] = {}
    for problem in error.errors(include_url=False, include_input=False):
        problems.setdefault(tuple(problem["loc"]), problem["msg"])
    leftovers = list(project.leftovers)
    packages: list[ImportedPackage] = []
    conda: list[ImportedPackage] = []
    settings: list[Setting] = []
    for route_name, items, kept in (
        ("packages", project.packages, packages),
        ("conda_packages", project.conda_packages, conda),
    ):
        for number, package in enumerate(items):
            reason = _reason(problems, (route_name, number))
            if reason is None:
                kept.append(package)
            else:
                message = f"{package.requirement} was left out"
                leftovers.append(Leftover(package.span, message, reason))
    for setting in project.settings:
        reason = _reason(problems, setting.route)
        if reason is None:
            settings.append(setting)
        else:
            name = ".".join(map(str, setting.route))
            message = f"{name}: {setting.value} was left out"
            leftovers.append(Leftover(setting.span, message, reason, f"set {name} in the spec"))
    return project._replace(
        packages=tuple(packages),
        conda_packages=tuple(conda),
        settings=tuple(settings),
        leftovers=tuple(leftovers),
    )


def _reason(problems: dict[Route, str], route: Route) -> str | None:
    """Return the message of the first error at a route, below it, or at the field that has it.

    The error of a whole field, such as a reserved name in `env`, begins with the key that it is
    about; if it begins with none, it concerns every value of the field.
    """
    for where, message in problems.items():
        if where[: len(route)] == route:
            return message
        is_about_field = bool(where) and route[: len(where)] == where
        if is_about_field and not (where == ("env",) and message.split(" ")[0] != route[-1]):
            return message
    return None
