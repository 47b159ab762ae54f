"""The default build of the newest admitted torch does not run on the card or the driver.

## What it does

Where `cuda` is left open, takes the newest torch that the bounds and the Python admit, and looks
whether its default build (the one without a tag, as `pip install torch` gets it) runs on the card
and on the driver that is known there.

## Why

The default moves on: CUDA 12.8 up to torch 2.10, 13.0 from 2.11, 13.2 from 2.15. For Volta and
older it has had no code since 2.11, and a driver of branch 570 does not run it. On Linux aarch64 it
was a CPU build up to 2.10.

## How to fix

Say `cuda`: then the build is settled, and with it the newest torch that has it.
"""

from __future__ import annotations

from provision.diagnostics import (
    Fix,
    Severity,
)
from provision.facts import TorchRelease, cuda_of
from provision.rules.edits import set_field_edit, unsafe_fix
from provision.rules.examples import EXAMPLE_TARGET
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.torch_builds import (
    BuildQuery,
    build_queries,
    can_run,
    possible_builds,
    runnable_cudas,
)


def _check(context: LintContext) -> Findings:
    if context.resolved is not None:
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
            problem = f"is for the CPU alone on {query.platform}"
        elif driver and any(build.flavour == default for build in builds):
            problem = (
                f"is for CUDA {cuda_of(default)}, too new for driver {driver.value} of "
                f"{driver.provider}"
            )
        else:
            problem = (
                f"is for CUDA {cuda_of(default)}, without code for {query.card.name} "
                f"({query.card.cc})"
            )
        cuda, torch = next(iter(cudas.items()))
        yield RULE.diagnostic(
            f"cuda is left open, and the default build of torch {row.release} {problem}",
            query.gpu_route,
            why="An installer that takes the newest torch gets that build, and not torch "
            f"{torch} for CUDA {cuda}.",
            help=", or ".join(
                f'write cuda: "{version}", which has torch {release}'
                for version, release in list(cudas.items())[:2]
            ),
            related=related_at(query.releases.route, "torch comes from here"),
            fix=_fix(context, query, cuda),
        )


def _may_run(context: LintContext, query: BuildQuery, row: TorchRelease) -> bool:
    """Return whether the default build runs, or may run for all the facts know."""
    default = row.default_on(query.platform)
    if default == "cpu":
        return False
    offer = next(iter(possible_builds(context, query._replace(flavour=default))), None)
    return offer is None or offer.release is not row or can_run(context, query, offer) is not False


def _fix(context: LintContext, query: BuildQuery, cuda: str) -> Fix | None:
    """Return the fix that sets the CUDA version for this target alone."""
    if len(context.spec.targets) > 1:
        return None
    edit = set_field_edit(context, query.target.gpu_settings.cuda_route, f'"{cuda}"')
    return unsafe_fix(f'write cuda: "{cuda}"', edit)


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
    bad=(
        Example('gpu: V100\npython: "3.12"\npackages: [torch]\n', "V100"),
        Example('gpu: P100\ncuda: auto\npython: "3.12"\npackages: ["torch>=2.6,<2.11"]\n', "P100"),
        Example(
            'gpu: L4\npython: "3.12"\npackages: [torch]\ntargets:\n  workbench: '
            f"{{{EXAMPLE_TARGET}, image: pytorch-2-7-cu128-ubuntu-2404-nvidia-570}}\n",
            "L4",
            other_ids=("IMG004",),
        ),
        Example(
            'gpu: GB200\npython: "3.12"\npackages: ["torch>=2.9,<2.11"]\nplatforms: '
            "[linux-aarch64]\n",
            "GB200",
        ),
        Example('gpu: H100-NVL\npython: "3.11"\npackages: [torch==2.0.1]\n', "H100-NVL"),
    ),
    good=examples(
        'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\n',
        'gpu: V100\npython: "3.12"\npackages: ["torch>=2.8,<2.11"]\n',
        'gpu: T4\npython: "3.12"\npackages: [torch]\n',
    ),
)
