"""What runs on devices needs nothing but Python there."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.util import resolve_name
from pathlib import Path

import pytest

import provision

SOURCE = Path(provision.__file__).parents[1]
PROGRAMS = ("core", "install", "notebook", "probe", "workbench")
FILES = (
    "sandbox/init_process.py",
    "sandbox/replica_hosts.py",
    "agent/capture.py",
    "agent/capture_paths.py",
)
MODULES = [SOURCE / "provision" / name for name in FILES] + [
    path for name in PROGRAMS for path in sorted((SOURCE / "provision/agent" / name).rglob("*.py"))
]


def imported(text: str, package: str) -> Iterator[str]:
    """Yield the absolute name of every module that a text imports."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield resolve_name(f"{'.' * node.level}{node.module or ''}", package)


def imported_modules(text: str, package: str) -> Iterator[str]:
    """Yield what a text imports, with the names that it takes out of a module below it."""
    yield from imported(text, package)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            module = resolve_name(f"{'.' * node.level}{node.module or ''}", package)
            yield from (f"{module}.{alias.name}" for alias in node.names)


def foreign(text: str, package: str) -> set[str]:
    """Return what a module of a program imports beside the standard library, its own program and
    the core; torch and its like only inside functions.
    """
    own = (".".join(package.split(".")[:3]), "provision.agent.core")
    outside = {
        name
        for name in imported(text, package)
        if not f"{name}.".startswith(tuple(f"{one}." for one in own))
    }
    at_top = "\n".join(
        ast.unparse(node)
        for node in ast.parse(text).body
        if isinstance(node, (ast.Import, ast.ImportFrom))
    )
    return {name for name in outside if name.startswith("provision")} | {
        name
        for name in imported(at_top, package)
        if name in outside and name.split(".")[0] not in sys.stdlib_module_names
    }


@pytest.mark.parametrize(
    "path", MODULES, ids=lambda path: path.relative_to(SOURCE / "provision").as_posix()
)
def test_it_imports_the_standard_library_its_program_and_the_core_only(path: Path) -> None:
    package = ".".join(path.relative_to(SOURCE).parent.parts)
    assert foreign(path.read_text(encoding="utf-8"), package) == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "import json\nfrom . import x\nfrom ..core.redact import redact\nfrom .cards import y",
            set(),
        ),
        ("import yaml", {"yaml"}),
        ("def f():\n import torch", set()),
        ("from ..install.installer import install", {"provision.agent.install.installer"}),
        ("from provision.sanitize import escape_control", {"provision.sanitize"}),
    ],
)
def test_anything_else_is_found(text: str, found: set[str]) -> None:
    assert foreign(text, "provision.agent.probe") == found
