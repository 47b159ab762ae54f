"""A package index is queried without encryption.

## What it does

Finds indexes whose address starts with http:// and is not on this machine.

## Why

Anybody on the network path can serve different files. The lock records the hashes of those files,
so a package that was replaced while locking is installed on every machine.

## How to fix

Use https://. For a mirror without a certificate inside your network, you trust that network.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.edits import replace_fix, yaml_scalar
from provision.rules.package_lines import url_host
from provision.rules.rule import Findings, LintContext, Rule, examples

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")


def _check(context: LintContext) -> Findings:
    for name, index in context.spec.indexes.items():
        if not index.url.startswith("http://") or url_host(index.url) in LOOPBACK_HOSTS:
            continue
        route = ("indexes", name, "url")
        better = index.url.replace("http://", "https://", 1)
        yield RULE.diagnostic(
            f"index `{name}` ({url_host(index.url)}) is queried without encryption",
            route,
            why=(
                "Anyone on the network path can serve different files, and the lock would "
                "then record the hashes of those files."
            ),
            help=f"use {better}",
            fix=replace_fix("use https", route, yaml_scalar(better, plain=False)),
        )


RULE = Rule(
    id="SEC005",
    name="index-without-tls",
    severity=Severity.WARNING,
    sources=(
        "pip documentation, --trusted-host: a host without HTTPS is not trusted by default",
        "uv documentation, allow-insecure-host",
    ),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.12"\npackages: [{name: ours, index: private}]\n'
        'indexes: {private: {url: «"http://packages.example.com/simple"»}}\n',
        'gpu: none\npython: "3.12"\npackages: [{name: ours, index: private}]\n'
        "indexes: {private: {url: «http://10.0.0.7/simple»}}\n",
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: [{name: ours, index: private}]\n'
        'indexes: {private: {url: "https://packages.example.com/simple"}}\n',
        'gpu: none\npython: "3.12"\npackages: [{name: ours, index: private}]\n'
        'indexes: {private: {url: "http://localhost:8080/simple"}}\n',
        'gpu: none\npython: "3.12"\npackages: [{name: ours, index: private}]\n'
        'indexes: {private: {url: "file:///srv/simple"}}\n',
    ),
)
