"""The instance runs as the default service account.

## What it does

Finds Workbench targets that do not set a service account, or set the default one of Compute Engine
or App Engine.

## Why

All machines of a project share the default service account, and in many projects it can edit
everything. Whoever opens the notebook acts with its permissions.

## How to fix

Create a service account that can only read and write the bucket: `gcloud iam
service-accounts create NAME`.
"""

from __future__ import annotations

import re

from provision.diagnostics import RoutePart, Severity
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples

DEFAULT_ACCOUNT_PATTERN = re.compile(
    r"[0-9]+-compute@developer\.gserviceaccount\.com|[^@]+@appspot\.gserviceaccount\.com"
)


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        account = fields.service_account
        if fields.managed_euc or (
            account is not None and not DEFAULT_ACCOUNT_PATTERN.fullmatch(account)
        ):
            continue
        yield RULE.diagnostic(
            f"{account} is a default service account"
            if account
            else (
                f"target `{target.name}` does not set a service account, so it runs as the default "
                "one"
            ),
            target.route if account is None else target.route_to("service_account"),
            at=RoutePart.KEY if account is None else RoutePart.VALUE,
            why=(
                "All machines in the project share this account, and in many projects it can "
                "edit everything."
            ),
            help=(
                f"set `service_account: NAME@{fields.project}.iam.gserviceaccount.com`, using "
                "an account that can access only the bucket"
            ),
        )


RULE = Rule(
    id="GCP013",
    name="service-account-default",
    severity=Severity.WARNING,
    sources=(
        "Google Cloud IAM documentation, Default service accounts",
        "Compute Engine documentation, Service accounts",
    ),
    check=_check,
    bad=examples(
        Example(example_spec(service_account=None), "wb"),
        example_spec(service_account="«123456789-compute@developer.gserviceaccount.com»"),
    ),
    good=examples(
        example_spec(service_account="trainer@my-project.iam.gserviceaccount.com"),
        'gpu: L4\npython: "3.12"\npackages: [torch]\n',
    ),
)
