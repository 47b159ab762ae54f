"""A job without a service account cannot read secrets.

## What it does

Finds `secrets` if a target of kind vertex-job has no `service_account`.

## Why

Without one, a job runs as an account of Google's that can read Cloud Storage and BigQuery of the
project, but not Secret Manager. The job would start, cost money, and fail.

## How to fix

Set `service_account`, and give the account roles/secretmanager.secretAccessor on the secrets.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import VertexJobTarget
from provision.rules.examples import example_job
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    for target, job in context.targets_of(VertexJobTarget):
        for name in context.spec.secrets if job.service_account is None else ():
            yield RULE.diagnostic(
                f"target `{target.name}` has no `service_account`, so it cannot read {name}",
                target.secret_route(name),
                why="The default identity of a job cannot access Secret Manager.",
                help="set `service_account` to an account with roles/secretmanager.secretAccessor",
                related=related_at(target.route, "this job runs as the default identity"),
            )


_HEAD = "secrets: {{TOKEN: {}}}\n"
_REFERENCE = "{secret: projects/p/secrets/t/versions/1}"

RULE = Rule(
    id="SEC006",
    name="job-secrets-account",
    severity=Severity.ERROR,
    sources=("Vertex AI documentation, Use a custom service account",),
    check=_check,
    reads_settings=True,
    bad=examples(example_job(_HEAD.format(f"«{_REFERENCE}»"))),
    good=examples(
        example_job(""),
        example_job(_HEAD.format(_REFERENCE), service_account="a@p.iam.gserviceaccount.com"),
    ),
)
