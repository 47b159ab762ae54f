"""A package index is queried without encryption.

## What it does

Finds indexes whose address begins with http://, other than on this machine.

## Why

Whoever sits on the way can answer in its place. The lock writes down the hash of what it was given,
so a package that was exchanged while locking is exchanged for good, on every machine.

## How to fix

Write https://. For a mirror inside a network that has no certificate, that network is what you
trust.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.edits import replace_fix, yaml_scalar
from provision.rules.package_lines import url_host
from provision.rules.rule import Example, Findings, LintContext, Rule, examples

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")


def _check(context: LintContext) -> Findings:
    for name, index in context.spec.indexes.items():
        if not index.url.startswith("http://") or url_host(index.url) in LOOPBACK_HOSTS:
            continue
        route = ("indexes", name, "url")
        better = index.url.replace("http://", "https://", 1)
        yield RULE.diagnostic(
            f"index {name} ({url_host(index.url)}) is asked without encryption",
            route,
            why="Whoever sits on the way can answer in its place, and the lock takes the hash "
            "of that answer.",
            help=f"write {better}",
            fix=replace_fix("write https", route, yaml_scalar(better, plain=False)),
        )


HEAD = 'gpu: none\npython: "3.12"\npackages: [{name: ours, index: private}]\n'
RULE = Rule(
    id="SEC005",
    name="index-without-tls",
    severity=Severity.WARNING,
    sources=(
        "pip documentation, --trusted-host: a host without HTTPS is not trusted by itself",
        "uv documentation, allow-insecure-host",
    ),
    check=_check,
    bad=(
        Example(
            f'{HEAD}indexes: {{private: {{url: "http://packages.example.com/simple"}}}}\n',
            '"http://packages.example.com/simple"',
        ),
        Example(
            f"{HEAD}indexes: {{private: {{url: http://10.0.0.7/simple}}}}\n",
            "http://10.0.0.7/simple",
        ),
    ),
    good=examples(
        f'{HEAD}indexes: {{private: {{url: "https://packages.example.com/simple"}}}}\n',
        f'{HEAD}indexes: {{private: {{url: "http://localhost:8080/simple"}}}}\n',
        f'{HEAD}indexes: {{private: {{url: "file:///srv/simple"}}}}\n',
    ),
)
