"""An instance cannot reach something that it needs.

## What it does

At Workbench targets, finds indexes and mirrors that are folders of this machine (`file://`), and
secrets that only another kind of place can follow (`env`, `colab`). An index or a secret that
serves another kind of target of the same spec is a warning.

## Why

The instance installs by itself, far from this machine: a folder here is not there, your own
variables stay with you, and it fetches secrets from Secret Manager with its service account. `plan`
refuses the target.

## How to fix

Serve the index over http and name that address, or a mirror of it under `mirrors`. Put the secret
into Secret Manager and write `{secret: projects/PROJECT/secrets/NAME/versions/1}`.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Route, Severity
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.package_lines import package_lines
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.workbench_instances import WorkbenchTargetFacts, workbench_instances


def _check(context: LintContext) -> Findings:
    softer = None
    if any(not isinstance(target.target, WorkbenchTarget) for target in context.targets):
        softer = Severity.WARNING
    for instance in workbench_instances(context):
        for route, name in _folders(context, instance):
            yield RULE.diagnostic(
                f"the index {name} is a folder of this machine, and {instance.facts.name} "
                "installs on its own",
                route,
                severity=softer if route[0] == "indexes" else None,
                why="An instance cannot reach the folders of this machine; plan refuses it.",
                help="name an address that begins with https://, or one under mirrors",
                related=related_at(instance.route("kind"), "kind of place"),
            )
        for name, reference in context.spec.secrets.items():
            if reference.secret is None:
                field = "env" if reference.env is not None else "colab"
                yield RULE.diagnostic(
                    f"{instance.facts.name} cannot follow secrets.{name}: it is named by {field}",
                    ("secrets", name, field),
                    severity=softer,
                    why="An instance fetches secrets from Secret Manager with its own "
                    "identity; plan refuses any other reference.",
                    help="name it in Secret Manager: {secret: "
                    "projects/PROJECT/secrets/NAME/versions/1}",
                    related=related_at(instance.route("kind"), "kind of place"),
                )


def _folders(context: LintContext, instance: WorkbenchTargetFacts) -> Iterator[tuple[Route, str]]:
    used = {package.index for _, package in package_lines(context)}
    for name, index in context.spec.indexes.items():
        if name in used and name not in instance.target.mirrors and index.url.startswith("file:"):
            yield ("indexes", name, "url"), name
    for name, address in instance.target.mirrors.items():
        if address.startswith("file:"):
            yield instance.route("mirrors", name), name


_NAMED = "gpu: L4\nsecrets: {HF_TOKEN: {env: HF_TOKEN}}\n"
_INDEX = 'gpu: L4\nindexes: {private: {url: "file:///srv/wheels"}}\n'

RULE = Rule(
    id="GCP023",
    name="out-of-reach",
    severity=Severity.ERROR,
    sources=(
        "the spec language: kinds of secret references",
        "docs.cloud.google.com, Workbench instances, create an instance (network)",
    ),
    check=_check,
    bad=(
        Example(example_spec(mirrors='{pypi: "file:///srv/mirror"}'), '"file:///srv/mirror"'),
        Example(
            example_spec(_INDEX).replace("[torch]", "[torch, {name: ours, index: private}]"),
            '"file:///srv/wheels"',
        ),
        Example(example_spec(_NAMED) + "  here: {kind: local, gpu: none}\n", "HF_TOKEN"),
        Example(example_spec(_NAMED), "HF_TOKEN", other_ids=("SEC004",)),
    ),
    good=examples(
        example_spec(_INDEX, mirrors='{private: "https://packages.example.com/simple"}').replace(
            "[torch]", "[torch, {name: ours, index: private}]"
        ),
        example_spec(
            "gpu: L4\nsecrets: {HF_TOKEN: {secret: projects/my-project/secrets/hf/versions/1}}\n"
        ),
    ),
)
