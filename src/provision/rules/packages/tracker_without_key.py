"""Training reports to Weights & Biases, and nothing brings its key.

## What it does

Looks for wandb where training reports to it: `report_to` names it, or transformers before 5, which
reports to every tracker that is installed when `report_to` is not given. WANDB_API_KEY must be
among `secrets` (or `env`), or WANDB_MODE must say offline or disabled.

## Why

Without a key and without a terminal, training ends at its first step: "api_key not configured
(no-tty)". On a machine where somebody once logged in it works, and on the next one it does not.

## How to fix

Add `secrets: {WANDB_API_KEY: {env: WANDB_API_KEY}}`, or `env: {WANDB_MODE: offline}`, or
`report_to: none` under `training.arguments`.
"""

from __future__ import annotations

from provision.diagnostics import Route, Severity
from provision.facts.versions import require_version
from provision.rules.admitted_releases import transformers_releases
from provision.rules.package_lines import find_line
from provision.rules.package_requirements import requested_trackers
from provision.rules.packages.credentials import add_secret_fix, declares_variable
from provision.rules.rule import Example, Findings, LintContext, Rule, examples

DISABLING_VARIABLES = ("WANDB_MODE", "WANDB_DISABLED")
ALL_UNTIL = "5"
"""The first transformers release whose default of `report_to` is "none" (warning in
training_args.py of 4.57.6).
"""


def _check(context: LintContext) -> Findings:
    if context.resolved is not None or declares_variable(context, "WANDB_API_KEY"):
        return
    route = _tracker_route(context)
    if route is None or not context.spec.env.keys().isdisjoint(DISABLING_VARIABLES):
        return
    yield RULE.diagnostic(
        "training reports to Weights & Biases, and no WANDB_API_KEY is among secrets",
        route,
        why='Where nobody can be asked for it, training ends with "api_key not configured '
        '(no-tty)".',
        help="add it to secrets, or set WANDB_MODE: offline in env, or report_to: none under "
        "training.arguments",
        fix=add_secret_fix(context, "WANDB_API_KEY"),
    )


def _tracker_route(context: LintContext) -> Route | None:
    """Return the route of what makes training report to wandb; None when nothing does for sure."""
    if not context.trains_with_trainer:
        return None
    line = find_line(context, "wandb")
    trackers = requested_trackers(context)
    if "wandb" in trackers or ("all" in trackers and line):
        return ("training", "arguments", "report_to")
    releases = transformers_releases(context)
    if "report_to" in context.spec.training.arguments or line is None or releases is None:
        return None
    if not releases.known or releases.includes_newer:
        return None
    is_default = require_version(releases.known[-1]) < require_version(ALL_UNTIL)
    return line[0] if is_default else None


RULE = Rule(
    id="PKG022",
    name="tracker-without-key",
    severity=Severity.WARNING,
    sources=(
        "wandb, the error api_key not configured (no-tty)",
        "report_to in training_args.py of transformers 4.57.6 and 5.23.0",
        "unslothai/unsloth#1914",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5", '
            "wandb]\ntraining: {arguments: {report_to: wandb}}\n",
            "wandb",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: [wandb, '
            '"transformers[torch]==4.57.6"]\nsecrets: {HF_TOKEN: {env: HF_TOKEN}}\n',
            "wandb",
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [wandb, '
        '"transformers[torch]==4.57.6"]\nsecrets: {WANDB_API_KEY: {env: '
        "WANDB_API_KEY}}\n",
        'gpu: none\npython: "3.11"\npackages: [wandb, '
        '"transformers[torch]==4.57.6"]\nenv: {WANDB_MODE: offline}\n',
        'gpu: none\npython: "3.11"\npackages: [wandb, "transformers[torch]>=5"]\n',
        'gpu: none\npython: "3.11"\npackages: [wandb, '
        '"transformers[torch]==4.57.6"]\ntraining: {arguments: {report_to: none}}\n',
    ),
)
