"""An instance cannot reach an index or a secret.

## What it does

On Workbench targets, finds indexes and mirrors that are folders on this machine (`file://`), and
secrets that only other kinds of targets can read (`env`, `colab`). An index or a secret that a
target of a different kind in the same spec uses is a warning.

## Why

The packages are installed on the instance, which cannot read your folders or your environment
variables; it reads secrets from Secret Manager with its service account. `plan` refuses the target.

## How to fix

Serve the index over http and set that address, or set a mirror for it under `mirrors`. Store the
secret in Secret Manager and set `{secret: projects/PROJECT/secrets/NAME/versions/1}`.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Route, Severity
from provision.kinds import WorkbenchTarget
from provision.kinds.base import TargetFacts
from provision.rules.examples import example_spec
from provision.rules.package_lines import package_lines
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.workbench_instances import related_kind, shared_field_severity


def _check(context: LintContext) -> Findings:
    shared = shared_field_severity(context)
    for target, fields in context.targets_of(WorkbenchTarget):
        for route, name in _folders(context, target, fields):
            yield RULE.diagnostic(
                f"target `{target.name}` cannot reach the index `{name}`, a folder on this machine",
                route,
                severity=shared if route[0] == "indexes" else None,
                why=(
                    "The packages are installed on the instance, which cannot read this "
                    "machine's files. `plan` refuses the target."
                ),
                help="use an https:// URL, or set one under `mirrors`",
                related=related_kind(target),
            )
        for name, reference in context.spec.with_settings_of(target.name).secrets.items():
            if reference.secret is None:
                route, listed = target.secret_route(name), " or ".join(sorted(reference.sources))
                is_shared = route[0] == "secrets"
                yield RULE.diagnostic(
                    f"target `{target.name}` cannot read secrets.{name} from {listed}",
                    (*route, *reference.sources) if len(reference.sources) == 1 else route,
                    severity=shared if is_shared else None,
                    why=(
                        "An instance reads secrets only from Secret Manager, with its service "
                        "account. `plan` refuses any other source."
                    ),
                    help=(
                        "store it in Secret Manager, and set `{secret: "
                        "projects/PROJECT/secrets/NAME/versions/1}`"
                    ),
                    related=related_kind(target),
                )


def _folders(
    context: LintContext, target: TargetFacts, fields: WorkbenchTarget
) -> Iterator[tuple[Route, str]]:
    used = {package.index for _, package in package_lines(context)}
    for name, index in context.spec.indexes.items():
        if name in used and name not in fields.mirrors and index.url.startswith("file:"):
            yield ("indexes", name, "url"), name
    for name, address in fields.mirrors.items():
        if address.startswith("file:"):
            yield target.route_to("mirrors", name), name


_NAMED = "gpu: L4\nsecrets: {HF_TOKEN: {env: HF_TOKEN}}\n"
_INDEX = 'gpu: L4\nindexes: {private: {url: "file:///srv/wheels"}}\n'
_PACKAGES = "[torch, {name: ours, index: private}]"


RULE = Rule(
    id="GCP023",
    name="out-of-reach",
    severity=Severity.ERROR,
    sources=(
        "the spec language: kinds of secret references",
        "docs.cloud.google.com, Workbench instances, create an instance (network)",
    ),
    check=_check,
    bad=examples(
        example_spec(mirrors='{pypi: «"file:///srv/mirror"»}'),
        Example(
            example_spec(_INDEX, _PACKAGES),
            '"file:///srv/wheels"',
        ),
        Example(example_spec(_NAMED) + "  here: {kind: local, gpu: none}\n", "HF_TOKEN"),
        Example(example_spec(_NAMED), "HF_TOKEN", other_ids=("SEC004",)),
    ),
    good=examples(
        example_spec(_INDEX, _PACKAGES, mirrors='{private: "https://packages.example.com/simple"}'),
        example_spec(
            "gpu: L4\nsecrets: {HF_TOKEN: {secret: projects/my-project/secrets/hf/versions/1}}\n"
        ),
    ),
)
