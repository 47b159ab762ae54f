"""Imports of packages that Colab has preinstalled and that nothing else installs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Set
from typing import NamedTuple

from provision.facts import Facts
from provision.facts.lazy_tables import load_colab_packages
from provision.imports.notebook import CellImport
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.installs import modules_of, requests

_OFTEN_BROUGHT = frozenset(
    {
        "aiohttp",
        "certifi",
        "filelock",
        "fsspec",
        "huggingface-hub",
        "jinja2",
        "joblib",
        "networkx",
        "numpy",
        "packaging",
        "pandas",
        "pillow",
        "protobuf",
        "psutil",
        "pyarrow",
        "pyyaml",
        "regex",
        "requests",
        "safetensors",
        "scipy",
        "setuptools",
        "six",
        "sympy",
        "tokenizers",
        "tqdm",
        "triton",
        "typing-extensions",
        "urllib3",
    }
)
"""Packages that torch, transformers, accelerate, datasets, peft, trl, diffusers, scikit-learn,
torchvision or jax require, by METADATA of their wheels on PyPI, read 2026-11-27.
"""

_NO_PACKAGES = sys.stdlib_module_names | {"google", "ipykernel", "ipython", "pip", "wheel"}
"""Top-level modules, in lower case, that say nothing about a package: those of Python, a namespace
of many packages, and what every kernel has.
"""


class UninstalledImport(NamedTuple):
    """The first import of a package that nothing installs."""

    found: CellImport
    package: str


def find_uninstalled_imports(
    context: NotebookContext, locked: Set[str] | None = None
) -> Iterator[UninstalledImport]:
    """Yield the packages that are imported, but neither in the spec nor installed by a cell.

    `locked` are the names of all packages that are there; None if they are not known.
    """
    present = set(locked or _OFTEN_BROUGHT) | {request.name for request in requests(context)}
    if context.spec is not None:
        present |= {package.key for package in context.spec.packages}
        present |= {package.name for package in context.spec.conda_packages}
    modules = {module for name in present for module in modules_of(name, context.facts)}
    for found in context.notebook.imports:
        module = found.module.partition(".")[0].lower()
        if found.is_conditional or module in modules | _NO_PACKAGES:
            continue
        modules.add(module)
        package = _find_package(module, context.facts)
        if package is not None:
            yield UninstalledImport(found, package)


def _find_package(module: str, facts: Facts) -> str | None:
    """Return the package with a module, if the newest Colab runtime has it preinstalled."""
    runtime = facts.runtimes["latest"].runtime
    preinstalled = load_colab_packages().get(runtime, {})
    name = module.replace("_", "-")
    if name in preinstalled:
        return name
    for row in facts.replaced.values():
        if row.name.replace("-", "_") == module and row.instead in preinstalled:
            return row.instead
    return None
