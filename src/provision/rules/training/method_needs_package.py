"""LoRA or QLoRA is declared, but its package is missing.

## What it does

For `method: lora` and `qlora`, looks for peft, and for `qlora` also for bitsandbytes: listed, as an
extra, or through a package that depends on them (unsloth, axolotl). A spec with unknown packages
gives no finding before it is resolved.

## Why

Neither transformers nor Trainer depends on them. Without bitsandbytes, loading in 4 bits fails with
"requires the latest version of bitsandbytes".

## How to fix

Add the package that the finding names.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.package_requirements import (
    add_package_fix,
    has_unknown_packages,
    is_known_dependency,
)
from provision.rules.rule import Findings, LintContext, ResolvedSet, Rule, example, examples

NEEDS = {"lora": ("peft",), "qlora": ("peft", "bitsandbytes")}
FRAMEWORKS = (
    "unsloth",
    "axolotl",
    "llamafactory",
    "autotrain-advanced",
    "torchtune",
    "litgpt",
    "ms-swift",
)
"""Training frameworks that contain an implementation, or depend on these packages (their project
pages).
"""


def _check(context: LintContext) -> Findings:
    method = context.spec.training.method
    if method not in NEEDS or context.spec.framework() == "none":
        return
    provided = {*context.package_names}
    provided.update(package.name for package in context.spec.conda_packages)
    if context.resolved is None:
        if has_unknown_packages(context):
            return
        packages = context.spec.packages
        provided.update(extra.lower() for package in packages for extra in package.extras)
        provided.update(name for name in NEEDS[method] if is_known_dependency(context, name))
    if not context.package_names.isdisjoint(FRAMEWORKS):
        return
    for name in NEEDS[method]:
        if name not in provided:
            yield RULE.diagnostic(
                f"`method: {method}` needs {name}, which is not {context.package_list}",
                ("training", "method"),
                severity=None if context.resolved else Severity.WARNING,
                why="It is not a dependency of transformers or of any other listed package.",
                help=f"add {name} to `packages`",
                fix=add_package_fix(name, ""),
            )


RULE = Rule(
    id="TRN011",
    name="method-needs-package",
    severity=Severity.ERROR,
    sources=(
        "quantizers/quantizer_bnb_4bit.py of the transformers wheels",
        "peft documentation, quickstart",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {method: «lora»}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5", peft]\n'
        "training: {method: «qlora»}\n",
        example(
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5", our-tools]\n'
            "training: {method: «lora»}\n",
            ResolvedSet(
                {
                    "torch": "2.13.0",
                    "transformers": "5.13.1",
                    "accelerate": "1.15.0",
                    "our-tools": "1.0",
                },
                "3.11",
                "cu130",
            ),
        ),
    ),
    good=examples(
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5", peft, bitsandbytes]\n'
        "training: {method: qlora}\n",
        'gpu: L4\npython: "3.11"\n'
        'packages: ["transformers[torch]>=5", "trl[peft]", bitsandbytes]\n'
        "training: {method: qlora}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5", unsloth]\n'
        "training: {method: qlora}\n",
        'gpu: L4\npython: "3.11"\n'
        'packages: ["transformers[torch]==4.57.6", autoawq, setfit, "lm-eval[hf]"]\n'
        "training: {method: lora}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: {method: full}\n',
    ),
)
