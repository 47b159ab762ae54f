"""transformers refuses .bin checkpoints if torch is older than 2.6.

## What it does

Reports, as a note, that all possible transformers releases check the torch version before they read
a pickled checkpoint, and that no possible torch is new enough.

## Why

`from_pretrained` of a model that has only pytorch_model.bin fails with "Due to a serious
vulnerability issue in `torch.load` ... require users to upgrade torch to at least v2.6". Models
with safetensors files load.

## How to fix

No change is needed if all your models have safetensors files. Otherwise use torch 2.6 or newer.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.versions import is_satisfiable
from provision.rules.admitted_releases import transformers_releases
from provision.rules.package_requirements import (
    is_certainly_within,
    origin_route,
    related_line,
    requested_package,
)
from provision.rules.rule import Findings, LintContext, ResolvedSet, Rule, example, examples


def _check(context: LintContext) -> Findings:
    package = requested_package(context, "transformers")
    torch = requested_package(context, "torch")
    releases = transformers_releases(context)
    if package is None or torch is None or releases is None or not releases.known:
        return
    floor = context.facts.torch_floor(releases.known[-1])
    if floor is not None and not torch.may_be(floor.version):
        return
    for need in context.facts.undeclared_of.get("transformers", ()):
        if (
            need.severity == "info"
            and need.of == "torch"
            and is_certainly_within(package.specifiers, need.first, need.last)
            and not is_satisfiable(need.specifier, torch.specifiers)
        ):
            yield RULE.diagnostic(
                f"{package.description} loads .bin checkpoints only with torch{need.specifier}, "
                f"but {torch.description} is {context.chosen}",
                origin_route(context, torch, package.route),
                why=f"Otherwise {need.effect}.",
                help=(
                    f"use torch{need.specifier}, or ignore this if every model has safetensors "
                    "files"
                ),
                related=related_line(package),
            )


RULE = Rule(
    id="PKG024",
    name="bin-checkpoints-refused",
    severity=Severity.INFO,
    sources=("check_torch_load_is_safe in utils/import_utils.py of the transformers wheels",),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: [«torch==2.5.1», "transformers[torch]==4.57.6"]\n',
        example(
            'gpu: none\npython: "3.11"\n'
            'packages: [«"torch<2.7"», "transformers[torch]>=4.53,<5"]\n',
            ResolvedSet(
                {"torch": "2.5.1+cpu", "transformers": "4.57.6", "accelerate": "1.15.0"},
                "3.11",
                "cpu",
            ),
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [torch==2.6.0, "transformers[torch]==4.57.6"]\n',
        'gpu: none\npython: "3.11"\npackages: [torch==2.5.1, "transformers[torch]==4.51.3"]\n',
        'gpu: none\npython: "3.11"\npackages: [torch==2.5.1, transformers, accelerate]\n',
    ),
)
