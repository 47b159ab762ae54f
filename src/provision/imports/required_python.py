"""The Python that a project requires, against that of a machine."""

from __future__ import annotations

from pathlib import PurePath

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from provision.diagnostics import Diagnostic
from provision.imports.model import ImportedProject
from provision.source.findings import make_finding

_OF_PROJECTS = ("pyproject.toml", "uv.lock", "pylock*.toml")
"""Files whose `requires-python` is only a limit: those of conda install the Python that they name.
"""
_PATCHES = range(30)


def find_excluded_python(project: ImportedProject, machine: str, checked: str) -> Diagnostic | None:
    """Return a finding if a project excludes the Python of a machine.

    Args:
        project: The merged content.
        machine: The Python of the machine as major.minor; "" if it is not known.
        checked: The Python that the files were checked with instead.
    """
    setting = next((one for one in project.settings if one.route == ("python",)), None)
    if setting is None or not machine:
        return None
    name = PurePath(setting.span.file).name
    if not any(PurePath(name).match(pattern) for pattern in _OF_PROJECTS):
        return None
    value = str(setting.value)
    try:
        admitted = SpecifierSet(f"=={value}.*" if value[0].isdigit() else value)
    except InvalidSpecifier:
        return None
    if any(admitted.contains(f"{machine}.{patch}") for patch in _PATCHES):
        return None
    return make_finding(
        "python-excluded",
        f"{name} requires Python {value}, but the machine has Python {machine}",
        setting.span,
        why=(
            "pip refuses to install the project on that machine. The project's packages "
            f"were checked for Python {checked} instead; using it requires a separate environment."
        ),
        hint=(
            f"allow Python {machine} in {name}, or save a spec and use its environment, which has "
            "its own Python"
        ),
    )
