"""A call of TrainingArguments has an argument that the installed transformers does not have.

## What it does

Compares the keyword arguments of TrainingArguments, and of its subclasses such as SFTConfig, with
those of the transformers release that the notebook uses: the locked one (`--spec`), the one that a
cell installs, or that of the Colab runtime. An install command without a version takes the newest
known release.

## Why

The call fails with "unexpected keyword argument". transformers 5 removed about thirty names that
tutorials use: evaluation_strategy, no_cuda, overwrite_output_dir, per_gpu_train_batch_size.

## How to fix

Use the name that replaced it, or install a transformers release that has the argument.
"""

from __future__ import annotations

from typing import NamedTuple

from provision.diagnostics import Applicability, Diagnostic, Fix, Replace, Severity
from provision.facts.schema_packages import TrainingArgument
from provision.facts.versions import admitted_versions, parse_version
from provision.imports.notebook import CellInstall
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.installs import RequestedInstall, requests
from provision.rules.notebook.notebook_examples import LOCAL_SPEC, LOCKED, notebook_example
from provision.rules.notebook.python_code import CallArgument, CellCall
from provision.rules.notebook.trainer_classes import TRAINING_ARGUMENTS, is_trainer_class
from provision.rules.rule import Findings, Rule
from provision.rules.training.trainer_arguments import find_successor, is_in_release
from provision.spelling import nearest_word


class _Release(NamedTuple):
    """The release of transformers that a notebook uses; `is_exact` if it is certain."""

    version: str
    is_exact: bool


def _check(context: NotebookContext) -> Findings:
    calls = [call for call in context.code.calls if is_trainer_class(call, context.facts)]
    release = _release(context) if calls else None
    if release is None or not context.facts.has_transformers_release(release.version):
        return
    for call in calls:
        for argument in call.arguments:
            row = context.facts.arguments.get(argument.name)
            if row is None:
                yield from _unknown(context, call, argument, release)
            elif is_in_release(context.facts, row, release.version) is False:
                yield from _removed(context, call, argument, row, release)


def _removed(
    context: NotebookContext,
    call: CellCall,
    argument: CallArgument,
    row: TrainingArgument,
    release: _Release,
) -> Findings:
    own = context.facts.subclass_arguments.get(argument.name)
    if own is not None and own.of.partition(" ")[0] == call.name:
        return
    instead, is_renamed = find_successor(context.facts, row, release.version)
    fix = None
    if instead is None:
        help_text = row.instead or "remove it"
    elif is_renamed:
        help_text = f"use {instead}"
        if all(other.name != instead for other in call.arguments):
            applicability = Applicability.SAFE if release.is_exact else Applicability.UNSAFE
            fix = Fix(f"use {instead}", (Replace(argument.name_span, instead),), applicability)
    else:
        help_text = f"use {instead}, which takes different values"
    yield _finding(
        call,
        argument,
        release,
        f"transformers {release.version} has no argument {argument.name}",
        help_text,
        fix,
    )


def _unknown(
    context: NotebookContext, call: CellCall, argument: CallArgument, release: _Release
) -> Findings:
    """Yield the finding about a misspelled name; subclasses may have further arguments."""
    facts = context.facts
    is_own = call.function.startswith("transformers.") and call.name == TRAINING_ARGUMENTS
    if not is_own or argument.name in facts.subclass_arguments:
        return
    possible = [
        name for name, row in facts.arguments.items() if is_in_release(facts, row, release.version)
    ]
    meant = nearest_word(argument.name, possible, 2)
    message = f"TrainingArguments in transformers {release.version} has no argument {argument.name}"
    help_text = f"use {meant}" if meant else "correct the name, or remove the argument"
    fix = None
    if meant and all(other.name != meant for other in call.arguments):
        fix = Fix(f"use {meant}", (Replace(argument.name_span, meant),), Applicability.UNSAFE)
    yield _finding(call, argument, release, message, help_text, fix)


def _finding(
    call: CellCall,
    argument: CallArgument,
    release: _Release,
    message: str,
    help_text: str,
    fix: Fix | None,
) -> Diagnostic:
    return RULE.diagnostic(
        message,
        argument.name_span,
        severity=None if release.is_exact else Severity.WARNING,
        why=f"{call.name} fails with \"unexpected keyword argument '{argument.name}'\".",
        help=help_text,
        fix=fix,
    )


def _release(context: NotebookContext) -> _Release | None:
    if any(map(_is_from_repository, context.installs)):
        return None
    installed = [request for request in requests(context) if request.name == "transformers"]
    if installed:
        return _installed_release(context, installed[-1])
    locked = context.locked_version("transformers")
    if locked is not None:
        return _Release(locked, True)
    for place in context.places:
        if place.packages and (version := parse_version(place.packages.get("transformers", ""))):
            return _Release(version.public, True)
    return None


def _is_from_repository(install: CellInstall) -> bool:
    """Return whether a command installs a transformers that is not a release."""
    return any("transformers" in word.text and "://" in word.text for word in install.arguments)


def _installed_release(context: NotebookContext, request: RequestedInstall) -> _Release | None:
    """Return the release that a command installs, or keeps if it is good enough."""
    if request.is_exact:
        exact = [clause.version for clause in request.specifiers if clause.operator[:2] == "=="]
        return _Release(exact[0], True)
    known = [place.packages.get("transformers", "") for place in context.places if place.packages]
    for installed in filter(None, known):
        if not request.replaces(installed):
            return _Release(installed, True)
    admitted = admitted_versions(request.specifiers, context.facts.transformers_read)
    return _Release(admitted[-1], False) if admitted else None


RULE = Rule(
    id="NTB005",
    name="trainer-call-argument",
    severity=Severity.ERROR,
    sources=("training_args.py in the transformers wheels on PyPI",),
    check=_check,
    bad=(
        notebook_example(
            "from transformers import TrainingArguments\n"
            'args = TrainingArguments("out", «evaluation_strategy»="epoch")\n',
            spec=LOCAL_SPEC,
            locked=LOCKED,
        ),
        notebook_example(
            "%pip install transformers==4.57.6 trl==0.24.0\n# %%\n"
            "from trl import SFTConfig\n"
            'args = SFTConfig("out", «evaluation_strategy»="epoch")\n',
        ),
        notebook_example(
            "%pip install transformers==5.0.0\n# %%\nimport transformers as hf\n"
            'args = hf.TrainingArguments("out", «learning_rates»=1e-4)\n',
        ),
    ),
    good=(
        notebook_example(
            "from transformers import TrainingArguments\n"
            'args = TrainingArguments("out", eval_strategy="epoch")\n',
            spec=LOCAL_SPEC,
            locked=LOCKED,
        ),
        notebook_example(
            "%pip install transformers==4.40.2\n# %%\n"
            "from transformers import TrainingArguments\n"
            'args = TrainingArguments("out", evaluation_strategy="epoch")\n',
        ),
        notebook_example(
            "from transformers import TrainingArguments\n"
            'args = TrainingArguments("out", evaluation_strategy="epoch")\n',
        ),
    ),
)
