"""A package needs certain releases of another package without declaring it.

## What it does

Compares packages with the known requirements that their releases do not declare: names that they
import from another package and that were removed there (datasets 2.14 from pyarrow 21, peft 0.17
from transformers 5), and the limits that transformers and trl check themselves when they use a
package (bitsandbytes, torchao, kernels, gguf, liger-kernel). Most of these requirements were read
from the wheels of consecutive releases: imports, attributes and keyword arguments that one release
uses and another does not have.

For a spec, it also reports that nothing keeps the other package below such a limit, and, if the
package itself is not pinned, that the newest release which the spec admits has such a requirement.

## Why

The installation succeeds, and the import or the first use fails. Installers choose the newest
release of everything, so old pins break when another package is updated.

## How to fix

Add the bound that the finding names.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Diagnostic, Severity
from provision.facts.schema_packages import UndeclaredRequirement
from provision.rules.package_requirements import (
    RequestedPackage,
    is_certainly_within,
    possible_releases,
    requested_package,
)
from provision.rules.packages.undeclared_requirements import check_undeclared
from provision.rules.packages.window_findings import check_windows
from provision.rules.rule import Findings, LintContext, ResolvedSet, Rule, example, examples

_OF_TRAINER = ("transformers", "accelerate")


def _check(context: LintContext) -> Findings:
    undeclared = context.facts.undeclared_of
    findings: dict[tuple[str, str], Diagnostic] = {}
    for name in context.package_names & undeclared.keys():
        package = requested_package(context, name)
        if package is None:
            continue
        for need in undeclared[name]:  # of two findings about a pair, the more severe counts
            if (
                need.severity == "info"
                or (need.of == "protobuf" and context.spec.loads_old_protobuf)
                or not is_certainly_within(package.specifiers, need.first, need.last)
            ):
                continue
            for finding in check_undeclared(RULE, context, package, need):
                findings.setdefault((name, need.of), finding)
    yield from findings.values()
    for pair, finding in check_windows(RULE, context):
        # PKG001 reports what Trainer needs of accelerate.
        if pair not in findings and not (pair == _OF_TRAINER and context.uses_trainer):
            yield finding
    for name in ("transformers", "trl"):
        if user := requested_package(context, name):
            for need in _runtime_checks(context, user):
                yield from check_undeclared(RULE, context, user, need)


def _runtime_checks(
    context: LintContext, package: RequestedPackage
) -> Iterator[UndeclaredRequirement]:
    """Yield the requirements that all possible releases of a package check at run time."""
    releases = possible_releases(context.facts, package.name, package.specifiers)
    if releases is None or not releases.rows:
        return
    oldest = releases.rows[-1]
    bounds = [(of, f">={floor}", f"{floor} or newer") for of, floor in oldest.floors.items()]
    if len(releases.rows) == 1:
        ceilings = getattr(oldest, "ceilings", {})
        bounds += [
            (of, f"<{ceiling}", f"a release before {ceiling}") for of, ceiling in ceilings.items()
        ]
    for of, specifier, what in bounds:
        yield UndeclaredRequirement(
            package.name,
            oldest.first,
            oldest.last,
            of,
            specifier,
            f"{package.name} checks the version of {of} on use, and accepts only {what}",
            "warning",
            oldest.evidence,
        )


RULE = Rule(
    id="PKG010",
    name="undeclared-need",
    severity=Severity.ERROR,
    sources=(
        "imports and *_MIN_VERSION constants inside the wheels on PyPI",
        "huggingface/datasets#7742",
        "huggingface/peft#3333",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.11"\n'
        "packages: [datasets==2.14.4, «pyarrow==21.0.0», fsspec==2023.9.2]\n",
        'gpu: none\npython: "3.11"\npackages: [«datasets==2.14.4», fsspec==2023.9.2]\n',
        'gpu: none\npython: "3.11"\n'
        "packages: [datasets==2.14.4, pyarrow==14.0.0, «fsspec==2023.10.0», numpy==1.26.4]\n",
        'gpu: none\npython: "3.10"\npackages: [jax==0.4.23, jaxlib==0.4.23, «scipy==1.13.0»]\n',
        'gpu: none\npython: "3.11"\npackages: [gensim==4.3.2, «scipy==1.13.0»]\n',
        'gpu: none\npython: "3.11"\npackages: [datasets==2.14.6, «pyarrow==20.0.0»]\n',
        'gpu: none\npython: "3.10"\npackages: [tensorboard==2.8.0, «protobuf==4.21.0»]\n',
        'gpu: none\npython: "3.11"\npackages: [«"transformers[torch]==5.12.1"», peft==0.17.1]\n',
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5.4,<5.6", «torchao==0.14.1»]\n',
        'gpu: none\npython: "3.10"\n'
        "packages: [«pytorch-lightning==1.4.9», torch==1.13.1, numpy==1.26.4]\n",
        'gpu: none\npython: "3.10"\npackages: [tensorflow-addons==0.23.0, «tensorflow==2.16.1»]\n',
        'gpu: none\npython: "3.10"\npackages: [tensorflow-addons==0.20.0, «tensorflow==2.13.0»]\n',
        'gpu: none\npython: "3.10"\npackages: [chex==0.1.82, jaxlib==0.4.24, «jax==0.4.24»]\n',
        'gpu: L4\npython: "3.10"\n'
        "packages: [jax==0.4.28, «jaxlib==0.4.28», jax-cuda12-plugin==0.4.30]\n",
        example(
            'gpu: none\npython: "3.11"\npackages: [«peft==0.17.1»]\n',
            ResolvedSet(
                {
                    "torch": "2.13.0",
                    "transformers": "5.13.1",
                    "peft": "0.17.1",
                    "accelerate": "1.15.0",
                },
                "3.11",
                "cpu",
            ),
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\n'
        "packages: [datasets==2.14.4, pyarrow==14.0.0, fsspec==2023.9.2]\n",
        'gpu: none\npython: "3.11"\npackages: [datasets==2.14.7, pyarrow==14.0.1]\n',
        'gpu: none\npython: "3.10"\npackages: [jax==0.4.24, jaxlib==0.4.24, scipy==1.13.0]\n',
        'gpu: none\npython: "3.11"\npackages: [datasets==2.14.7]\n',
        'gpu: none\npython: "3.10"\npackages: [tensorboard==2.8.0, protobuf==4.21.0]\n'
        "env: {PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION: python}\n",
        'gpu: none\npython: "3.10"\npackages: [wandb==0.9.7, protobuf==4.21.0]\n',
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]==4.57.6", peft==0.17.1]\n',
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5.4,<5.6", torchao==0.15.0]\n',
        'gpu: none\npython: "3.11"\npackages: [datasets==2.14.4]\nexclude_newer: 2025-06-01\n',
        'gpu: none\npython: "3.10"\n'
        "packages: [pytorch-lightning==1.4.9, torchmetrics==0.7.3, torch==1.13.1, numpy==1.26.4]\n",
        'gpu: none\npython: "3.10"\npackages: [tensorflow-addons==0.23.0, tensorflow==2.15.1]\n',
        'gpu: none\npython: "3.10"\npackages: [chex==0.1.83, jaxlib==0.4.24, jax==0.4.24]\n',
        'gpu: L4\npython: "3.10"\npackages: [jax==0.4.28, jaxlib, jax-cuda12-plugin==0.4.28]\n',
    ),
)
