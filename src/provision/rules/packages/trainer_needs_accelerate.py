"""The Hugging Face Trainer needs accelerate, at the minimum version of the transformers release.

## What it does

If training uses the Hugging Face Trainer, looks for accelerate: as a listed package, through an
extra such as `transformers[torch]`, or through a package that depends on it (peft, trl, unsloth).
Its version bounds must admit the minimum that the allowed transformers releases enforce.

In a spec with unknown packages, which may depend on accelerate, this is a warning until the set is
resolved. It is a warning too if every target is a Colab runtime that has a sufficient accelerate
preinstalled. Without `training` there is no finding if another package uses transformers for a
different purpose: vllm, diffusers, sentence-transformers, faster-whisper.

## Why

transformers does not depend on accelerate, so an installer silently leaves it out. The
first `TrainingArguments(...)` then fails with "ImportError: Using the `Trainer` with `PyTorch`
requires `accelerate>=...`". Some releases pass accelerate an argument that is newer than the
minimum they declare: `Trainer` in 4.52.1 and later fails with a TypeError ("unexpected keyword
argument 'keep_torch_compile'") before accelerate 1.3.0. The minimum here is the higher of the two.
Colab has accelerate preinstalled: the same notebook works there and fails on other machines.

## How to fix

Add `accelerate>=MINIMUM` to the packages, or use `transformers[torch]`.
"""

from __future__ import annotations

from packaging.utils import canonicalize_name

from provision.diagnostics import Applicability, Route, Severity
from provision.facts.versions import has_version_in_range, require_version
from provision.rules.admitted_releases import AdmittedReleases, transformers_releases
from provision.rules.edits import unsafe_fix
from provision.rules.package_lines import find_line, set_version_edit, version_specifiers
from provision.rules.package_requirements import (
    add_package_fix,
    has_unknown_packages,
    is_known_dependency,
)
from provision.rules.rule import (
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
    related_at,
)
from provision.spec import Package

WHY = (
    "Trainer fails without this release of accelerate or a newer one. Installers do not check "
    "this, because accelerate is only an optional dependency of transformers."
)


def _check(context: LintContext) -> Findings:
    releases = transformers_releases(context)
    if releases is None or not context.trains_with_trainer or _has_other_use(context):
        return
    line = find_line(context, "accelerate")
    if context.resolved is not None:
        yield from _resolved_findings(context, releases, context.resolved)
    elif line is None:
        yield from _missing_findings(context, releases)
    else:
        yield from _excluded_findings(context, releases, *line)


def _missing_findings(context: LintContext, releases: AdmittedReleases) -> Findings:
    floor = context.facts.accelerate_floor(releases.known[-1]) if releases.known else None
    severity = None
    if floor:
        requirement = f"accelerate>={floor.version}"
        message = (
            f"Trainer in {releases.requested} needs {requirement}, but accelerate is not listed"
        )
        if has_unknown_packages(context) or _is_preinstalled(context, floor.version):
            severity = Severity.WARNING
    else:
        requirement = "accelerate"
        message = (
            f"accelerate is not listed; {releases.requested} is newer than the facts, and Trainer "
            "needs accelerate in every known release since 4.29"
        )
        severity = Severity.UNKNOWN
    is_beyond_facts = releases.includes_newer and not releases.known
    if _is_required_by_listed(context) or not (floor or is_beyond_facts):
        return
    yield RULE.diagnostic(
        message,
        releases.route,
        severity=severity,
        why=WHY,
        help=f"add {requirement} to `packages`, or use transformers[torch]",
        fix=add_package_fix(requirement, "")._replace(applicability=Applicability.SAFE),
    )


def _excluded_findings(
    context: LintContext, releases: AdmittedReleases, route: Route, package: Package
) -> Findings:
    floor = context.facts.accelerate_floor(releases.known[0]) if releases.known else None
    specifiers = version_specifiers(package)
    if floor is None or specifiers is None or has_version_in_range(specifiers, floor.version):
        return
    is_certain = floor.certain and not has_version_in_range(specifiers, floor.certain)
    bound = f">={floor.version}"
    edit = set_version_edit(context, route, package, bound)
    yield RULE.diagnostic(
        f"{package.requirement} excludes accelerate{bound}, which Trainer in "
        f"{releases.requested} needs",
        route,
        severity=None if is_certain else Severity.WARNING,
        why=WHY,
        help=f"use accelerate{bound}",
        related=related_at(releases.route, "transformers requested here"),
        fix=unsafe_fix(f"use accelerate{bound}", edit),
    )


def _resolved_findings(
    context: LintContext, releases: AdmittedReleases, resolved: ResolvedSet
) -> Findings:
    floor = context.facts.accelerate_floor(resolved.versions["transformers"])
    installed = resolved.versions.get("accelerate")
    if floor is None:
        return
    requirement = f"accelerate>={floor.version}"
    if installed is None:
        yield RULE.diagnostic(
            f"Trainer in {releases.requested} needs {requirement}, but accelerate is not among the "
            "resolved packages",
            releases.route,
            why=WHY,
            help=f"add {requirement} to `packages`",
        )
    elif require_version(installed) < require_version(floor.version):
        line = find_line(context, "accelerate")
        is_certain = floor.certain and require_version(installed) < require_version(floor.certain)
        yield RULE.diagnostic(
            f"accelerate {installed} is too old: Trainer in {releases.requested} needs "
            f"{requirement}",
            line[0] if line else ("packages",),
            severity=None if is_certain else Severity.WARNING,
            why=WHY,
            help=f"use {requirement}",
            related=related_at(releases.route, "transformers requested here"),
        )


def _has_other_use(context: LintContext) -> bool:
    """Return whether another package explains transformers and no training is declared."""
    return "training" not in context.spec.model_fields_set and any(
        package.key in context.facts.uses_transformers for package in context.spec.packages
    )


def _is_preinstalled(context: LintContext, floor: str) -> bool:
    """Return whether each target installs on top of a runtime with a sufficient accelerate."""
    runtimes = [target.kind.preinstalled(target) or {} for target in context.targets]
    return all(
        require_version(runtime.get("accelerate", "0")) >= require_version(floor)
        for runtime in runtimes
    ) and bool(runtimes)


def _is_required_by_listed(context: LintContext) -> bool:
    line = find_line(context, "transformers")
    extras = map(canonicalize_name, line[1].extras if line else ())
    return (
        not context.facts.accelerate_extras.isdisjoint(extras)
        or any(package.name == "accelerate" for package in context.spec.conda_packages)
        or is_known_dependency(context, "accelerate")
    )


RULE = Rule(
    id="PKG001",
    name="trainer-needs-accelerate",
    severity=Severity.ERROR,
    sources=(
        "ACCELERATE_MIN_VERSION in utils/import_utils.py of the transformers wheels",
        "huggingface/transformers#24147",
        "huggingface/transformers#28294",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: L4\npython: "3.12"\npackages: [torch==2.13.0, «transformers==5.13.1»]\n',
        'gpu: L4:2\npython: "3.12"\npackages: [torch, «transformers==5.13.1»]\n'
        "training: {strategy: ddp}\n",
        'gpu: none\npython: "3.11"\npackages:\n  - torch\n  - «transformers>=5.13» # newest\n',
        'gpu: none\npython: "3.11"\npackages: [torch, transformers==5.13.1, «"accelerate<1"»]\n',
        'gpu: none\npython: "3.11"\npackages: [torch, «transformers==5.13.1», our-tools]\n',
        'gpu: T4\npython: "3.12"\npackages: [«transformers==5.0.0»]\n'
        'targets: {colab: {kind: colab, runtime: "2026.07"}}\n',
        'gpu: none\npython: "3.11"\n'
        "packages: [torch, «transformers==5.13.1», sentence-transformers]\ntraining: {}\n",
        example(
            'gpu: none\npython: "3.11"\npackages: [torch, transformers, «accelerate»]\n',
            ResolvedSet(
                {"torch": "2.13.0", "transformers": "5.23.0", "accelerate": "0.34.0"}, "3.11", "cpu"
            ),
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\n'
        "packages: [torch==2.0.1, transformers==4.29.2, datasets==2.14.4, accelerate==0.21.0]\n",
        'gpu: none\npython: "3.11"\npackages: [torch, "transformers[torch]>=5.13"]\n',
        'gpu: none\npython: "3.11"\npackages: [torch, transformers, peft]\n',
        'gpu: none\npython: "3.11"\npackages: [torch, transformers, unsloth]\n'
        "training: {method: lora}\n",
        'gpu: none\npython: "3.11"\npackages: [torch, transformers, "diffusers[torch]"]\n'
        "training: {framework: hf-trainer}\n",
        'gpu: L4\npython: "3.11"\npackages: [torch==2.8.0, transformers==4.57.0, vllm==0.11.0]\n',
        'gpu: none\npython: "3.11"\n'
        "packages: [torch, transformers, sentence-transformers, diffusers]\n",
        'gpu: none\npython: "3.11"\n'
        "packages: [torch>=2, torchaudio>=2, faster-whisper==1.0.0, transformers, pandas]\n",
        'gpu: none\npython: "3.11"\npackages: [torch, transformers]\n'
        "training: {method: inference}\n",
    ),
)
