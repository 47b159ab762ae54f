"""A cell installs a torch that has no wheel for the Python of the place.

## What it does

Looks up the Pythons for which the torch releases in install commands have wheels, and compares them
with the Python of the Colab runtime that the notebook was saved on, or with that of the spec
(`--spec`). python-has-no-torch reports the same for the packages of a spec.

## Why

torch is published only as wheels. Without a wheel for this Python, the command ends with "Could not
find a version that satisfies the requirement", and the cells after it run with the torch that was
there before, or without one.

## How to fix

Install a torch release that supports the Python, or remove torch from the command to keep the
preinstalled version. A spec for another runtime chooses the Python.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.versions import admitted_versions, format_versions, has_version_in_range
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.installs import RequestedInstall, requests
from provision.rules.notebook.notebook_examples import notebook_example
from provision.rules.package_lines import url_host
from provision.rules.rule import Findings, Rule

_SOURCES = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--no-index")
"""Options of pip that name other sources of packages."""


def _check(context: NotebookContext) -> Findings:
    table = {row.release: row for row in context.facts.torch}
    for request in requests(context):
        if request.name != "torch" or _has_other_source(context, request):
            continue
        rows = [table[release] for release in admitted_versions(request.specifiers, table)]
        if not rows:
            continue
        admits_newer = has_version_in_range(request.specifiers, f"{[*table][-1]}.0.1")
        for place in context.places:
            missing = [
                platform
                for platform in place.platforms
                if not any(place.python in row.pythons_on(platform) for row in rows)
            ]
            pythons = rows[-1].pythons_on(missing[0]) if missing else ()
            if not pythons:
                continue
            others = [
                row.release for row in table.values() if place.python in row.pythons_on(missing[0])
            ]
            fixes = [f"install torch {format_versions(others)}"] if others else []
            if "torch" in (place.packages or {}) or not others:
                fixes.append("remove torch from the command to keep the preinstalled version")
            supported = f"torch {rows[-1].release} supports Python {format_versions(pythons)}"
            yield RULE.diagnostic(
                f"{request.package.requirement} has no wheel for Python {place.python} of "
                f"{place.name}; {supported}",
                request.span,
                severity=Severity.UNKNOWN if admits_newer else None,
                why="torch is published only as wheels, so it cannot be installed for other Python "
                "versions."
                + (" Releases newer than the facts may have one." if admits_newer else ""),
                help=", or ".join(fixes),
            )
            break


def _has_other_source(context: NotebookContext, request: RequestedInstall) -> bool:
    """Return whether a command names a source other than PyTorch's indexes."""
    words = request.install.arguments
    if not any(word.text.partition("=")[0] in _SOURCES for word in words):
        return False
    hosts = {url_host(word.text.rpartition("=")[2]) for word in words if "://" in word.text}
    return not hosts or not hosts <= set(context.facts.torch_hosts)


RULE = Rule(
    id="NTB017",
    name="installed-torch-without-wheel",
    severity=Severity.ERROR,
    sources=("wheel tags of torch on the public package index",),
    check=_check,
    bad=(
        notebook_example("%pip install «torch==2.4.1»\n", colab="T4", other_ids=("NTB010",)),
        notebook_example(
            "!pip install «torch==2.1.2» --index-url https://download.pytorch.org/whl/cpu\n",
            spec='gpu: none\npython: "3.12"\npackages: [torch]\n',
        ),
    ),
    good=(
        notebook_example("%pip install torch==2.9.0\n", colab="T4", other_ids=("NTB010",)),
        notebook_example("%pip install torch==2.4.1\n"),
        notebook_example(
            "!pip install torch==2.1.2 --index-url https://wheels.example.org/simple\n",
            spec='gpu: none\npython: "3.12"\npackages: [torch]\n',
        ),
    ),
)
