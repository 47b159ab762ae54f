"""Two listed packages cannot be installed together, according to their declared requirements.

## What it does

Compares what the releases of each pair of listed packages declare: about each other (transformers
requires a range of tokenizers, vllm one torch), and about a package that is not listed
(transformers 4.57 requires huggingface-hub below 1, datasets 5.1 requires 1.31 or newer). For
about 220 packages, all releases are known, so requirements are followed through packages that are
not listed too. It reports a conflict only if no combination of the releases that the bounds admit
is possible.

## Why

The resolver finds no set of versions, and reports that minutes later in a longer text. With `pip
install --no-deps`, or if the packages are installed one after the other, the conflict shows at
import ("tokenizers>=0.22.0,<=0.23.0 is required for a normal functioning of this module").

## How to fix

Widen one of the two bounds to the one that the finding names.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from provision.diagnostics import Diagnostic, Severity
from provision.facts.package_releases import load_releases, requirements_on
from provision.facts.versions import is_satisfiable, parse_specifiers, version_bounds
from provision.rules.admitted_releases import torch_releases, torch_rows
from provision.rules.package_requirements import (
    ReleaseRow,
    RequestedPackage,
    declared_specifier,
    possible_releases,
    related_line,
    release_rows,
    requested_packages,
    set_version_fix,
    sort_specifiers,
)
from provision.rules.release_conflicts import (
    ReleaseConflict,
    describe_demand,
    release_conflicts,
)
from provision.rules.rule import Example, Findings, LintContext, ResolvedSet, Rule, examples

MOST_ROWS = 8
"""If a package has more admitted rows, its requirements on packages that are not listed are not
compared: a resolver can choose among them. Our choice.
"""
_BUILT_FOR_TORCH = {"torch", "torchvision", "torchaudio", "triton"}


class _Releases(NamedTuple):
    """A listed package and its possible releases, of which there is at least one."""

    package: RequestedPackage
    rows: tuple[ReleaseRow, ...]
    is_complete: bool
    has_unread: bool

    def declared(self, name: str) -> list[str | None]:
        """Return what each release declares for a package.

        A release between two rows may declare anything between what they declare: each jax
        requires its own jaxlib.
        """
        declared = [declared_specifier(row, name, self.package.extras) for row in self.rows]
        if self.has_unread:
            declared.append(_span(declared))
        return declared


def _check(context: LintContext) -> Findings:
    if context.resolved is not None:  # a resolver has checked it
        return
    listed = requested_packages(context)
    possible = []
    for name, package in listed.items():
        releases = possible_releases(context.facts, name, package.specifiers)
        if package.specifiers and releases and releases.rows:
            possible.append(_Releases(package, *releases))
    reported = []
    for own in possible:
        declared = {key.partition("[")[0] for key in own.rows[0].declared}
        for name in declared & listed.keys():
            for finding in _pair_conflicts(context, own, listed[name]):
                reported.append({own.package.name, name})
                yield finding
    for left, right in itertools.combinations(possible, 2):
        if max(len(left.rows), len(right.rows)) <= MOST_ROWS:
            names = left.rows[0].declared.keys() & right.rows[0].declared.keys() - listed.keys()
            for name in names:
                for finding in _common_dependency_conflicts(context, left, right, name):
                    reported.append({left.package.name, right.package.name})
                    yield finding
    for conflict in release_conflicts(context):
        is_reported = any(pair <= conflict.names for pair in reported)
        if not (is_reported or conflict.admitted or _is_of_other_rule(context, conflict)):
            yield _release_conflict(context, conflict)


def _span(declared: Sequence[str | None]) -> str | None:
    """Return the specifiers from the lowest to the highest declared version."""
    if None in declared:
        return None
    bounds = [version_bounds(parse_specifiers(specifiers or "")) for specifiers in declared]
    lows, highs = [low for low, _ in bounds if low], [high for _, high in bounds if high]
    clauses = [f">={min(lows)}"] if len(lows) == len(bounds) else []
    if len(highs) == len(bounds):
        clauses.append(f"<={max(highs)}")
    return ",".join(clauses)


def _is_of_other_rule(context: LintContext, conflict: ReleaseConflict) -> bool:
    """Return whether torch-companion-mismatch or built-for-numpy-1 reports a conflict."""
    if conflict.name == "numpy":
        return any(
            demand.by in context.facts.numpy_floors
            and demand.by in conflict.names
            and not release_rows(context.facts, demand.by)
            and not is_satisfiable(demand.specifiers, ">=2")
            for demand in conflict.demands
        )
    return conflict.names <= _BUILT_FOR_TORCH and bool(torch_rows(context, torch_releases(context)))


def _release_conflict(context: LintContext, conflict: ReleaseConflict) -> Diagnostic:
    name, line = conflict.name, conflict.line
    texts = [describe_demand(conflict, demand, context) for demand in conflict.demands]
    options = []
    if line.name == name:
        texts.append(f"{line.description} is requested")
        options.append(f"{name}{sort_specifiers(conflict.demands[-1].specifiers)}")
        options += _accepting_releases(context, conflict)
    return RULE.diagnostic(
        f"{', '.join(texts[:-1])}, but {texts[-1]}",
        line.route,
        why=f"No release of {name} satisfies all of these, so the packages cannot be installed "
        "together.",
        help=f"use {', or '.join(options)}"
        if options
        else f"use releases that agree on {name}, or remove one of the packages",
        related=tuple(
            related for other in conflict.lines if other != line for related in related_line(other)
        ),
    )


def _accepting_releases(context: LintContext, conflict: ReleaseConflict) -> list[str]:
    """Return the newest release of the requiring package that accepts the requested ones."""
    table, demand, python = load_releases(), conflict.demands[-1], context.spec.python
    releases = table[demand.by]
    wanted = table[conflict.name].admitted(conflict.line.specifiers) or 0
    possible = releases.on_python(python, may_build=False)
    for group in releases.groups_of(possible & ~releases.newer):
        required = requirements_on(group.requires, python) or {}
        specifiers = required.get(conflict.name)
        if specifiers and (table[conflict.name].admitted(specifiers) or 0) & wanted:
            return [f"{demand.by}=={releases.newest_of(group.releases & possible)}"]
    return []


def _pair_conflicts(context: LintContext, releases: _Releases, other: RequestedPackage) -> Findings:
    package = releases.package
    newest, *older = releases.declared(other.name)
    if not other.specifiers or any(
        specifier is None or is_satisfiable(specifier, other.specifiers)
        for specifier in (newest, *older)
    ):
        return
    required = sort_specifiers(newest or "")
    accepting = _newest_accepting(context, package, other.name, other.specifiers)
    yield RULE.diagnostic(
        f"{package.description} requires {other.name}{required}, but {other.description} is "
        "requested",
        other.route,
        severity=None if releases.is_complete else Severity.WARNING,
        why="The two cannot be installed together.",
        help=f"use {other.name}{required}" + (f", or {accepting}" if accepting else ""),
        related=related_line(package),
        fix=set_version_fix(context, other, required),
    )


def _common_dependency_conflicts(
    context: LintContext, left: _Releases, right: _Releases, name: str
) -> Findings:
    pairs = itertools.product(left.declared(name), right.declared(name))
    if "[" in name or any(a is None or b is None or is_satisfiable(a, b) for a, b in pairs):
        return
    own = left.rows[0].declared[name]
    others = right.rows[0].declared[name]
    accepting = [
        _newest_accepting(context, left.package, name, others),
        _newest_accepting(context, right.package, name, own),
    ]
    yield RULE.diagnostic(
        f"{left.package.description} requires {name}{sort_specifiers(own)}, but "
        f"{right.package.description} requires {name}{sort_specifiers(others)}",
        right.package.route,
        severity=None if left.is_complete and right.is_complete else Severity.WARNING,
        why=f"No release of {name} satisfies both, so the two cannot be installed together.",
        help=f"use {' or '.join(filter(None, accepting))}"
        if any(accepting)
        else f"remove one of the two: no releases of both agree on {name}",
        related=related_line(left.package),
    )


def _newest_accepting(
    context: LintContext, package: RequestedPackage, name: str, specifiers: str
) -> str:
    """Return the newest release of a package that accepts versions of another, or ""."""
    for row in reversed(release_rows(context.facts, package.name)):
        declared = declared_specifier(row, name, package.extras)
        if declared is not None and is_satisfiable(declared, specifiers):
            return f"{package.name}=={row.last}"
    return ""


RULE = Rule(
    id="PKG009",
    name="declared-conflict",
    severity=Severity.ERROR,
    sources=(
        "METADATA of the wheels on PyPI",
        "hiyouga/EasyR1#27",
        "YanWenKun/Hunyuan3D-2-WinPortable#104",
    ),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.11"\n'
        'packages: ["transformers[torch]==5.13.1", «tokenizers==0.21.0»]\n',
        'gpu: L4\npython: "3.11"\npackages: [«torch==2.4.0», vllm==0.7.3, transformers==4.49.0]\n',
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]==4.57.6", «datasets==5.1.0»]\n',
        'gpu: none\npython: "3.10"\npackages: [tensorboardX==2.5.1, «onnx==1.13.0»]\n',
        'gpu: none\npython: "3.10"\npackages: [fastapi==0.95.0, «pydantic==2.5.0»]\n',
        'gpu: none\npython: "3.10"\npackages: [tensorflow==2.12.0, «protobuf==5.26.1»]\n',
        'gpu: none\npython: "3.11"\npackages: [jax==0.6.1, «jaxlib==0.6.0»]\n',
    ),
    good=(
        *examples(
            'gpu: none\npython: "3.11"\n'
            'packages: ["transformers[torch]==5.13.1", tokenizers==0.22.2]\n',
            'gpu: none\npython: "3.11"\n'
            'packages: ["transformers[torch]>=5.13", "tokenizers<0.23"]\n',
            'gpu: L4\npython: "3.11"\npackages: [torch==2.5.1, vllm==0.7.3]\n',
            'gpu: none\npython: "3.10"\npackages: [tensorboardX==2.5.1, onnx==1.12.0]\n',
            'gpu: none\npython: "3.10"\npackages: [tensorboardX, onnx==1.13.0]\n',
            'gpu: none\npython: "3.11"\npackages: [jax==0.5.2, jaxlib==0.5.1]\n',
            'gpu: none\npython: "3.11"\npackages: [jax==0.6.1, jaxlib==0.6.1]\n',
            'gpu: L4\npython: "3.11"\n'
            "packages: [jax-cuda12-plugin==0.5.1, jax-cuda12-pjrt==0.5.1]\n",
            'gpu: none\npython: "3.10"\npackages: [tensorflow==2.12.0, protobuf==4.21.9]\n',
            'gpu: none\npython: "3.10"\npackages: [onnxruntime==1.18.0, numpy==1.25.2]\n',
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]", tokenizers]\n',
            resolved=ResolvedSet(
                {
                    "torch": "2.13.0",
                    "transformers": "5.13.1",
                    "tokenizers": "0.22.2",
                    "accelerate": "1.15.0",
                },
                "3.11",
                "cpu",
            ),
        ),
    ),
)
