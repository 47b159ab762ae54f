"""Whether the packages of a spec include torch, or another library that shows that a GPU works."""

from __future__ import annotations

from provision.rules.package_requirements import (
    declared_specifier,
    is_known_dependency,
    release_rows,
)
from provision.rules.rule import LintContext

_IN_CONDA = ("pytorch", "pytorch-gpu")


def has_torch(context: LintContext) -> bool:
    """Return whether torch is in the resolved set, or is listed or a known dependency."""
    return context.cached("has torch", lambda: _has_torch(context))


def _has_torch(context: LintContext) -> bool:
    if context.resolved is not None:
        return "torch" in context.resolved.versions
    if is_known_dependency(context, "torch") or is_known_dependency(context, "accelerate"):
        return True
    if any(package.name in _IN_CONDA for package in context.spec.conda_packages):
        return True
    for package in context.spec.packages:
        if package.key in context.facts.torch_family or "torch" in package.extras:
            return True
        for row in release_rows(context.facts, package.key)[-1:]:
            if declared_specifier(row, "torch", package.extras) is not None:
                return True
    return False


def can_test_gpu(context: LintContext) -> bool:
    """Return whether torch is there, or the library that the declared framework computes with."""
    wanted = context.spec.packages_that_test_a_gpu() - {"torch"}
    if context.resolved is not None:
        return has_torch(context) or not wanted.isdisjoint(context.resolved.versions)
    if not wanted.isdisjoint(context.package_names):
        return True
    return has_torch(context) or any(is_known_dependency(context, name) for name in wanted)
