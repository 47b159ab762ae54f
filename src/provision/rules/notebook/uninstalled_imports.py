"""Imports of packages that Colab has preinstalled and that nothing else installs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Set
from typing import NamedTuple

from provision.facts import Facts
from provision.facts.lazy_tables import load_colab_packages
from provision.imports.notebook import CellImport
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.import_sources import requested_names
from provision.rules.notebook.installs import modules_of
from provision.rules.notebook.module_packages import packages_with

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

_NO_PACKAGES = frozenset(
    {
        *(name.lower() for name in sys.stdlib_module_names),
        *("ipykernel", "ipython", "ipywidgets", "pip", "traitlets", "wheel"),
        *("azure", "backports", "google", "jaraco", "nvidia", "ruamel", "sphinxcontrib"),
    }
)
"""Top-level modules, in lower case, that say nothing about a package: those of Python, what
every kernel has, and namespaces of many packages.
"""


class UninstalledImport(NamedTuple):
    """The first import of a module that nothing installs, and its package; "" if unknown."""

    found: CellImport
    package: str


def find_uninstalled_imports(
    context: NotebookContext, present: Set[str] | None = None
) -> Iterator[UninstalledImport]:
    """Yield the modules that are imported, but neither in the spec nor installed by a cell.

    `present` are the names of all packages that are there; None if they are not known.
    """
    names = set(present or _OFTEN_BROUGHT) | requested_names(context)
    modules = {module for name in names for module in modules_of(name, context.facts)}
    modules |= _NO_PACKAGES | (context.neighbors or frozenset())
    for found in context.notebook.imports:
        module = found.module.partition(".")[0].lower()
        if not found.is_conditional and module and module not in modules:
            modules.add(module)
            yield UninstalledImport(found, _find_package(module, context.facts))


def is_preinstalled(package: str, facts: Facts) -> bool:
    """Return whether the newest Colab runtime has a package."""
    return package in load_colab_packages().get(facts.runtimes["latest"].runtime, {})


def _find_package(module: str, facts: Facts) -> str:
    """Return the package with a module, if a Colab runtime has it or it is much used; else ""."""
    name = module.replace("_", "-")
    if name in facts.popular or is_preinstalled(name, facts):
        return name
    # The shortest name of cv2 is opencv-python: the others have an addition that few need.
    packages = sorted(
        packages_with(module), key=lambda one: (not is_preinstalled(one, facts), len(one))
    )
    return packages[0] if packages else ""
