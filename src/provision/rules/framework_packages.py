"""Packages of jax and Keras: frameworks, backends and CUDA plugins, and whether a spec has them."""

from __future__ import annotations

from collections.abc import Collection

from provision.facts.versions import require_version
from provision.kinds.settings import TENSORFLOW_NAMES
from provision.rules.package_requirements import (
    RequestedPackage,
    find_listed_provider,
    is_known_dependency,
    requested_package,
)
from provision.rules.rule import LintContext
from provision.rules.torch_presence import has_torch

BACKENDS = {"tensorflow": TENSORFLOW_NAMES, "jax": ("jax",), "torch": ("torch",)}
"""The packages of each backend of Keras, of which one is enough."""

FRAMEWORKS = {"keras": ("keras", *TENSORFLOW_NAMES), "jax": ("jax",)}
"""The packages of each framework, of which one is enough; those of TensorFlow require keras."""

KERAS_3 = "2.16"
"""The first release of TensorFlow that requires Keras 3."""

JAX_PLUGINS = frozenset({"jax-cuda12-plugin", "jax-cuda13-plugin"})
JAX_EXTRAS = frozenset({"cuda", "cuda12", "cuda13", "cuda12-pip", "cuda12-local", "cuda13-local"})
"""Packages, and extras of jax, with which it uses a GPU (JAX documentation, Installation)."""


def has_package(context: LintContext, names: Collection[str]) -> bool:
    """Return whether one of the packages is resolved, listed, or a known dependency."""
    if context.resolved is not None:
        return not context.package_names.isdisjoint(names)
    by_conda = {package.name for package in context.spec.conda_packages}
    if not context.package_names.isdisjoint(names) or not by_conda.isdisjoint(names):
        return True
    if "torch" in names and has_torch(context):
        return True
    return any(
        is_known_dependency(context, name) or find_listed_provider(context, name) for name in names
    )


def requested_tensorflow(context: LintContext) -> RequestedPackage | None:
    """Return the package of TensorFlow that is requested or resolved."""
    requested = (requested_package(context, name) for name in TENSORFLOW_NAMES)
    return next((package for package in requested if package is not None), None)


def is_tf_keras_preinstalled(context: LintContext) -> bool:
    """Return whether each target installs on top of a runtime that has tf-keras."""
    runtimes = [target.kind.preinstalled(target) or {} for target in context.targets]
    return bool(runtimes) and all(
        require_version(runtime.get("tf-keras", "0")) >= require_version(KERAS_3)
        for runtime in runtimes
    )
