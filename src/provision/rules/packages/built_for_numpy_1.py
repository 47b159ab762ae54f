"""A package that was built for NumPy 1 is combined with NumPy 2.

## What it does

Compares torch, pandas, scipy, scikit-learn, matplotlib, opencv-python, h5py, faiss-cpu, onnxruntime
and other packages with the first of their releases that was built for NumPy 2. Older ones need
`numpy<2`. torch never declares that, and most others only in the last releases before it.

## Why

The import fails with "A module that was compiled using NumPy 1.x cannot be run in NumPy 2", or
"numpy.dtype size changed". With torch, the first `tensor.numpy()` fails with "Numpy is not
available". Trainer calls it during evaluation, and a program whose spec lists numpy passes arrays
to torch, so the finding is an error in both cases; other programs may not need it.

## How to fix

Add `numpy<2`, or use the release that the finding names.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.schema_packages import UndeclaredRequirement
from provision.facts.versions import (
    is_satisfiable,
    require_version,
)
from provision.rules.package_lines import find_line
from provision.rules.package_requirements import (
    RequestedPackage,
    declared_specifier,
    is_certainly_within,
    possible_releases,
    requested_package,
)
from provision.rules.packages.undeclared_requirements import check_undeclared
from provision.rules.rule import Findings, LintContext, ResolvedSet, Rule, example, examples

OLDEST_PYTHON = "3.9"
"""NumPy 2 has no wheels for older Pythons (METADATA of numpy 2.0)."""


def _check(context: LintContext) -> Findings:
    if require_version(context.spec.python) < require_version(OLDEST_PYTHON):
        return
    for name, floor in context.facts.numpy_floors.items():
        package = requested_package(context, name) if name in context.package_names else None
        if package is None or package.may_be(floor.first):
            continue
        if context.resolved is None and _is_known_to_conflict(context, package):
            continue
        is_declared = bool(floor.declared_first) and is_certainly_within(
            package.specifiers, floor.declared_first, floor.declared_last
        )
        need = UndeclaredRequirement(
            name,
            first="",
            last="",
            of="numpy",
            specifier="<2",
            effect=f"the compiled code in {name} before {floor.first} does not run with NumPy 2, "
            "because it was built for NumPy 1",
            severity="error" if name != "torch" or _passes_arrays(context) else "warning",
            evidence=floor.evidence,
        )
        yield from check_undeclared(RULE, context, package, need, declared=is_declared)


def _passes_arrays(context: LintContext) -> bool:
    """Return whether the program is likely to pass arrays between torch and NumPy."""
    return context.trains_with_trainer or find_line(context, "numpy") is not None


def _is_known_to_conflict(context: LintContext, package: RequestedPackage) -> bool:
    """Return whether all admitted releases declare numpy<2, which declared-conflict reports."""
    releases = possible_releases(context.facts, package.name, package.specifiers)
    declared = [declared_specifier(row, "numpy") for row in releases.rows] if releases else []
    return bool(declared) and all(
        bound is not None and not is_satisfiable(bound, ">=2") for bound in declared
    )


RULE = Rule(
    id="PKG011",
    name="built-for-numpy-1",
    severity=Severity.ERROR,
    sources=(
        "NumPy 2.0 migration guide",
        "libtorch_python.so of the torch wheels",
        "pyg-team/pytorch-frame#525",
        "pytorch/pytorch#132179",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: [torch==2.2.2, «numpy==2.0.2»]\n',
        'gpu: none\npython: "3.11"\npackages: [torch==2.2.2, «numpy»]\n',
        'gpu: none\npython: "3.11"\npackages: [scipy==1.12.0, «numpy>=2»]\n',
        'gpu: none\npython: "3.10"\npackages: [opencv-python==4.8.1.78, «numpy==2.0.0»]\n',
        'gpu: none\npython: "3.10"\npackages: [matplotlib==3.7.1, «numpy==2.0.0»]\n',
        example(
            'gpu: none\npython: "3.11"\npackages: [«torch==2.2.2»]\n',
            ResolvedSet({"torch": "2.2.2+cpu", "numpy": "2.4.6"}, "3.11", "cpu"),
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [torch==2.2.2, "numpy<2"]\n',
        'gpu: none\npython: "3.11"\npackages: [torch==2.3.0, numpy==2.0.2]\n',
        'gpu: none\npython: "3.11"\npackages: [torch==2.2.2]\n',
        'gpu: none\npython: "3.11"\npackages: [scipy==1.13.0, numpy>=2]\n',
        'gpu: none\npython: "3.11"\npackages: [pandas==2.1.4, numpy]\n',
        'gpu: none\npython: "3.10"\npackages: [opencv-python==4.10.0.84, numpy==2.0.0]\n',
        'gpu: none\npython: "3.10"\npackages: [matplotlib==3.7.1, tensorflow==2.13.0]\n',
    ),
)
