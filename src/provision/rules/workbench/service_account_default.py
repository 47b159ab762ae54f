"""The instance runs as the default service account.

## What it does

Finds Workbench targets that name no service account, or name the default one of Compute Engine or
App Engine.

## Why

The default service account is shared by all machines of a project, and in many projects it may edit
everything. Whoever opens the notebook acts with its rights.

## How to fix

Make a service account that may read and write the bucket, and nothing more: `gcloud iam
service-accounts create NAME`.
"""

from __future__ import annotations

import re

from provision.diagnostics import RoutePart, Severity
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.workbench_instances import workbench_instances

DEFAULT_ACCOUNT_PATTERN = re.compile(
    r"[0-9]+-compute@developer\.gserviceaccount\.com|[^@]+@appspot\.gserviceaccount\.com"
)


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        account = instance.target.service_account
        if instance.target.managed_euc or (
            account is not None and not DEFAULT_ACCOUNT_PATTERN.fullmatch(account)
        ):
            continue
        yield RULE.diagnostic(
            f"{account} is a default service account"
            if account
            else f"{instance.facts.name} names no service account, so it runs as the default one",
            instance.facts.route if account is None else instance.route("service_account"),
            at=RoutePart.KEY if account is None else RoutePart.VALUE,
            why="It is shared by all machines of the project, and in many projects it may edit "
            "everything.",
            help="write service_account: "
            f"NAME@{instance.target.project}.iam.gserviceaccount.com, one that may use the "
            "bucket only",
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
    bad=(
        Example(example_spec(service_account=None), "wb"),
        Example(
            example_spec(service_account="123456789-compute@developer.gserviceaccount.com"),
            "123456789-compute@developer.gserviceaccount.com",
        ),
    ),
    good=examples(
        example_spec(service_account="trainer@my-project.iam.gserviceaccount.com"),
        'gpu: L4\npython: "3.12"\npackages: [torch]\n',
    ),
)
