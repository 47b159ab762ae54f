"""The default build of the newest admitted torch does not run on the GPU or the driver.

## What it does

If `cuda` is not set, takes the newest torch that the bounds and the Python version admit, and
checks whether its default build (the one without a tag, which `pip install torch` gets) runs on the
GPU and on the known driver of the target. A spec that computes with jax or TensorFlow and has no
torch is not checked.

## Why

The default build changes: CUDA 12.8 up to torch 2.10, 13.0 from 2.11, 13.2 from 2.15. It has had no
code for Volta and older since 2.11, and does not run on driver branch 570. On Linux aarch64 it was
a CPU build up to 2.10.

## How to fix

Set `cuda`. It selects the build, and with it the newest torch that has it.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import TorchRelease, cuda_of
from provision.rules.examples import EXAMPLE_TARGET
from provision.rules.rule import Findings, LintContext, Rule, example, examples
from provision.rules.torch_builds import (
    BuildQuery,
    build_queries,
    can_run,
    describe_cudas,
    possible_builds,
    runnable_cudas,
    set_cuda_fix,
)
from provision.rules.torch_presence import can_test_gpu, has_torch


def _check(context: LintContext) -> Findings:
    without_torch = can_test_gpu(context) and not has_torch(context)
    if context.resolved is not None or without_torch:
        return
    for query in build_queries(context):
        newest = next(possible_builds(context, query), None)
        if query.flavour is not None or newest is None:
            continue
        row = newest.release
        if _may_run(context, query, row):
            continue
        cudas = runnable_cudas(context, query)
        default = row.default_on(query.platform)
        if not cudas and default == "cpu":
            cudas = {
                option.cuda: row.release
                for option in possible_builds(context, query)
                if option.build is None and option.release is row
            }
        if not cudas:
            continue
        driver = query.target.driver
        builds = context.facts.builds_for_card(query.card, row.release, query.platform)
        if default == "cpu":
            problem = f"is CPU-only on {query.platform}"
        elif driver and any(build.flavour == default for build in builds):
            problem = (
                f"is for CUDA {cuda_of(default)}, too new for driver {driver.value} on "
                f"{driver.provider}"
            )
        else:
            problem = (
                f"is for CUDA {cuda_of(default)} and does not support {query.card.name} "
                f"(compute capability {query.card.cc})"
            )
        cuda, torch = next(iter(cudas.items()))
        yield RULE.diagnostic(
            f"`cuda` is not set, and the default build of torch {row.release} {problem}",
            query.gpu_route,
            why=(
                "Unless `cuda` is set, an installer can pick this build instead of the "
                f"CUDA {cuda} build of torch {torch}."
            ),
            help=describe_cudas(cudas),
            related=query.releases.related,
            # The version may be that of the spec, which other targets use too.
            fix=set_cuda_fix(context, query, cuda) if len(context.targets) == 1 else None,
        )


def _may_run(context: LintContext, query: BuildQuery, row: TorchRelease) -> bool:
    """Return whether the default build runs, or may run as far as the facts show."""
    default = row.default_on(query.platform)
    if default == "cpu":
        return False
    offer = next(iter(possible_builds(context, query._replace(flavour=default))), None)
    return offer is None or offer.release is not row or can_run(context, query, offer) is not False


RULE = Rule(
    id="CUD009",
    name="default-build-unfit",
    severity=Severity.WARNING,
    sources=(
        "version.py and arch flags of the torch wheels on the public package index",
        "dev-discuss.pytorch.org 3290 and 3432",
        "Kaggle/docker-python#1546",
        "pytorch/pytorch#168065",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: «V100»\npython: "3.12"\npackages: [torch]\n',
        'gpu: «P100»\ncuda: auto\npython: "3.12"\npackages: ["torch>=2.6,<2.11"]\n',
        example(
            'gpu: «L4»\npython: "3.12"\npackages: [torch]\ntargets:\n  workbench: '
            f"{{{EXAMPLE_TARGET}, image: pytorch-2-7-cu128-ubuntu-2404-nvidia-570}}\n",
            other_ids=("IMG004",),
        ),
        'gpu: «GB200»\npython: "3.12"\npackages: ["torch>=2.9,<2.11"]\n'
        "platforms: [linux-aarch64]\n",
        'gpu: «H100-NVL»\npython: "3.11"\npackages: [torch==2.0.1]\n',
    ),
    good=examples(
        'gpu: V100\npython: "3.12"\npackages: ["jax[cuda12]"]\n',
        'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\n',
        'gpu: V100\npython: "3.12"\npackages: ["torch>=2.8,<2.11"]\n',
        'gpu: T4\npython: "3.12"\npackages: [torch]\n',
    ),
)
