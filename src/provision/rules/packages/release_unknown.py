"""The requested release of torch or transformers is not in the facts.

## What it does

Reports, as unknown, that no release in the fact tables satisfies the bounds of torch or
transformers.

## Why

Rules about Pythons, CUDA builds and floors cannot answer for such a release. It may be newer than
the facts, or it may not exist: torch 2.1.5 never came out, and resolving ends in "no matching
distribution".

## How to fix

Check the version. If it is newer than the facts, update provision; `==2.1.*` requests the newest
patch of a minor release.
"""

from __future__ import annotations

from provision.diagnostics import Fix, Severity
from provision.facts.versions import format_versions, named_versions, require_version
from provision.rules.edits import unsafe_fix
from provision.rules.package_lines import find_line, set_version_edit, version_specifiers
from provision.rules.releases import AdmittedReleases, torch_releases, transformers_releases
from provision.rules.rule import Example, Findings, LintContext, ResolvedSet, Rule, examples


def _check(context: LintContext) -> Findings:
    facts = context.facts
    yield from _unknown_release(
        context, "torch", torch_releases(context), tuple(row.release for row in facts.torch)
    )
    yield from _unknown_release(
        context,
        "transformers",
        transformers_releases(context),
        (facts.transformers[0].first, facts.transformers[-1].last),
    )


def _unknown_release(
    context: LintContext, name: str, releases: AdmittedReleases | None, table: tuple[str, ...]
) -> Findings:
    if releases is None or releases.known:
        return
    fix, near = _nearest(context, name, table)
    if releases.includes_newer:
        message = (
            f"{releases.requested} is newer than the facts, which know {name} up to {table[-1]}"
        )
    else:
        message = (
            f"the facts know no release that is {releases.requested}; they know "
            f"{near or format_versions((table[0], table[-1]))}"
        )
    yield RULE.diagnostic(
        message,
        releases.route,
        why="What Python, CUDA build and other packages it needs cannot be told from here; "
        "resolving and the device will show.",
        help="check the version, or update provision when the release is new",
        fix=fix,
    )


def _nearest(context: LintContext, name: str, table: tuple[str, ...]) -> tuple[Fix | None, str]:
    line = find_line(context, name)
    specifiers = None
    if line and line[1].version.startswith("=="):
        specifiers = version_specifiers(line[1])
    if specifiers is not None:
        minors = {version.release[:2] for version in named_versions(specifiers)}
    else:
        minors = set()
    near = [release for release in table if require_version(release).release[:2] in minors]
    if line is None or not near or context.resolved is not None:
        return None, ""
    minor = ".".join(near[0].split(".")[:2])
    edit = set_version_edit(context, *line, f"=={minor}.*")
    return unsafe_fix(f"take the newest {minor} release", edit), ", ".join(near)


RULE = Rule(
    id="PKG003",
    name="release-unknown",
    severity=Severity.UNKNOWN,
    sources=("release lists of torch and transformers on the public package index",),
    check=_check,
    bad=(
        Example('gpu: none\npython: "3.11"\npackages: [torch==2.1.5]\n', "torch==2.1.5"),
        Example('gpu: none\npython: "3.11"\npackages: [torch==99.0]\n', "torch==99.0"),
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=99"]\n',
            '"transformers[torch]>=99"',
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: [torch]\n',
            "torch",
            ResolvedSet({"torch": "99.0"}, "3.11", "cpu"),
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [torch==2.4.1, transformers==5.5.2, accelerate]\n',
        'gpu: none\npython: "3.11"\npackages: [torch>=2.13, transformers, accelerate]\n',
    ),
)
