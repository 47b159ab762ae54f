"""A cell installs packages without exact versions.

## What it does

Looks for requirements without `==` in the install commands of pip. If the notebook is checked with
a spec (`--spec`), the versions are those of its lock.

## Why

pip installs the newest release available on the day the cell runs. A notebook that worked last
month fails with the next release of transformers, or gives different results.

## How to fix

Pin the version, as in `transformers==5.0.0`. `provision import` turns the notebook into a spec,
and `provision lock` chooses versions that match. With `--spec`, `provision lint --fix`
writes the locked versions into the cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from packaging.requirements import InvalidRequirement, Requirement

from provision.diagnostics import Applicability, Fix, Replace, Severity
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.installs import RequestedInstall, order_of, requests
from provision.rules.notebook.notebook_examples import LOCAL_SPEC, LOCKED, notebook_example
from provision.rules.rule import Findings, Rule


def _check(context: NotebookContext) -> Findings:
    floating = (request for request in requests(context) if not request.is_exact)
    for _, group in groupby(floating, key=lambda request: order_of(context, request)):
        packages = list(group)
        edits = {request: _pin(context, request) for request in packages}
        locked = [request for request in packages if edits[request] is not None]
        for part in (locked, [request for request in packages if edits[request] is None]):
            if not part:
                continue
            fix = None
            if part is locked:
                title = f"pin {_list(locked)} to the locked version"
                applicability = Applicability.SAFE
                if any(_differs(context, request) for request in locked):
                    applicability = Applicability.UNSAFE
                fix = Fix(title, tuple(filter(None, edits.values())), applicability)
            exact = "an exact" if any(request.specifiers for request in part) else "a"
            be = "is" if len(part) == 1 else "are"
            yield RULE.diagnostic(
                f"{_list(part)} {be} installed without {exact} version",
                part[0].span,
                why=(
                    "pip installs the newest release that is available when the notebook runs, so "
                    "the versions change even if the notebook does not."
                ),
                help=fix.title
                if fix
                else (
                    "pin the version with `==`, or keep the packages in a spec with a lock "
                    "(`provision import`)"
                ),
                fix=fix,
            )


def _pin(context: NotebookContext, request: RequestedInstall) -> Replace | None:
    """Return the edit that writes the locked version; None without one."""
    version = context.locked_version(request.name)
    start, end = request.span.start.offset, request.span.end.offset
    written = context.notebook.cell(request.install.cell).source[start:end]
    quote = written[:1] if written[:1] in "'\"" else ""
    try:
        requirement = Requirement(written.strip(quote) if quote else written)
    except InvalidRequirement:  # the command is put together by Python
        return None
    if version is None or requirement.url is not None:
        return None
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    marker = f"; {requirement.marker}" if requirement.marker else ""
    pinned = f"{requirement.name}{extras}=={version}{marker}"
    if quote in pinned and quote:
        return None
    return Replace(request.span, f"{quote}{pinned}{quote}")


def _differs(context: NotebookContext, request: RequestedInstall) -> bool:
    """Return whether the cell does not admit the locked version."""
    version = context.locked_version(request.name)
    return version is not None and not request.specifiers.contains(version, prereleases=True)


def _list(packages: Iterable[RequestedInstall]) -> str:
    names = list(_names(packages))
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _names(packages: Iterable[RequestedInstall]) -> Iterator[str]:
    return iter(dict.fromkeys(request.name for request in packages))


RULE = Rule(
    id="NTB001",
    name="install-unpinned",
    severity=Severity.WARNING,
    sources=("pip documentation, Repeatable Installs: Pinning the package versions",),
    check=_check,
    bad=(
        notebook_example("%pip install -q «transformers» datasets\n"),
        notebook_example("%pip install «'transformers>=5'»\n"),
        notebook_example("%pip install «transformers»\n", spec=LOCAL_SPEC, locked=LOCKED),
    ),
    good=(
        notebook_example("%pip install transformers==5.0.0\n"),
        notebook_example("%pip install -r requirements.txt\n"),
    ),
)
