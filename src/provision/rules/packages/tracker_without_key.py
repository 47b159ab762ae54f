"""Training reports to Weights & Biases without an API key.

## What it does

Checks whether training reports to wandb: `report_to` names it, or the transformers release is older
than 5 and reports to every installed tracker if `report_to` is not set. In that case WANDB_API_KEY
must be in `secrets` (or `env`), or WANDB_MODE must be offline or disabled.

## Why

Without a key and a terminal, training fails at its first step: "api_key not configured
(no-tty)". It works on a machine where somebody once logged in, and fails on the next one.

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
from provision.rules.rule import Findings, LintContext, Rule, examples

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
        "training reports to Weights & Biases, but WANDB_API_KEY is not in `secrets`",
        route,
        why='Without a terminal, training fails with "api_key not configured (no-tty)".',
        help=(
            "add WANDB_API_KEY to `secrets`, set `WANDB_MODE: offline` under `env`, or set "
            "`report_to: none` under `training.arguments`"
        ),
        fix=add_secret_fix(context, "WANDB_API_KEY"),
    )


def _tracker_route(context: LintContext) -> Route | None:
    """Return the route of the setting that makes training report to wandb; None if not certain."""
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
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5", wandb]\n'
        "training: {arguments: {report_to: «wandb»}}\n",
        'gpu: none\npython: "3.11"\npackages: [«wandb», "transformers[torch]==4.57.6"]\n'
        "secrets: {HF_TOKEN: {env: HF_TOKEN}}\n",
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [wandb, "transformers[torch]==4.57.6"]\n'
        "secrets: {WANDB_API_KEY: {env: WANDB_API_KEY}}\n",
        'gpu: none\npython: "3.11"\npackages: [wandb, "transformers[torch]==4.57.6"]\n'
        "env: {WANDB_MODE: offline}\n",
        'gpu: none\npython: "3.11"\npackages: [wandb, "transformers[torch]>=5"]\n',
        'gpu: none\npython: "3.11"\npackages: [wandb, "transformers[torch]==4.57.6"]\n'
        "training: {arguments: {report_to: none}}\n",
    ),
)
