"""What a rule is, what it is asked about, and the small words that rules share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel

from provision.diagnostics import (
    Diagnostic,
    Fix,
    RelatedLocation,
    Route,
    RouteLocation,
    RoutePart,
    Severity,
)
from provision.facts import Facts
from provision.spec import Spec
from provision.target_facts import GpuSettings, TargetFacts, collect_target_facts

_Found = TypeVar("_Found")


class SourceText(Protocol):
    """The author's text of a spec, as far as rules look at it."""

    def text(self, route: Route) -> str | None:
        """Return a scalar as it was written, quotes resolved; None when there is no scalar at
        `route`.
        """

    def is_plain(self, route: Route) -> bool:
        """Tell whether there is a scalar without quotes at `route`."""


class ResolvedSet(NamedTuple):
    """One resolved set: canonical package name to exact version, Python as "3.11", torch flavour as
    "cu128" (None: no torch), what of it is source.
    """

    versions: Mapping[str, str]
    python: str
    flavour: str | None = None
    built_packages: frozenset[str] = frozenset()


@dataclass(frozen=True)
class LintContext:
    """What rules are asked about: a valid spec with its text, the facts, and when asked a second
    time the set it was resolved to.
    """

    spec: Spec
    source: SourceText
    facts: Facts
    resolved: ResolvedSet | None = None

    @cached_property
    def targets(self) -> tuple[TargetFacts, ...]:
        """Every target with what the facts know of it, in the spec's order."""
        return collect_target_facts(self.spec, self.facts)

    @cached_property
    def devices(self) -> tuple[GpuSettings, ...]:
        """Each pair of gpu and cuda that holds at some target, once."""
        return tuple(
            {
                (site.gpu_settings.gpu_route, site.gpu_settings.cuda_route): site.gpu_settings
                for site in self.targets
            }.values()
        )

    @cached_property
    def _kept(self) -> dict[str, Any]:
        return {}

    def cached(self, name: str, work: Callable[[], _Found]) -> _Found:
        """Return what `work` finds, the first time under that name; several rules ask the same of a
        case.
        """
        if name not in self._kept:
            self._kept[name] = work()
        found: _Found = self._kept[name]
        return found


Check = Callable[[LintContext], Iterator[Diagnostic]]


class Example(NamedTuple):
    """A spec on which a rule speaks or keeps silent; `at` is the text that a finding must point at,
    `beside` the ids of other rules that speak too.
    """

    spec: str
    at: str = ""
    resolved: ResolvedSet | None = None
    other_ids: tuple[str, ...] = ()


class Rule(NamedTuple):
    """One thing that can be wrong with a spec. `severity` is the gravest it speaks with; `page` is
    the docstring of its module.
    """

    id: str
    name: str
    severity: Severity
    summary: str
    sources: tuple[str, ...]
    page: str | None
    check: Check
    bad: tuple[Example, ...]
    good: tuple[Example, ...]

    def diagnostic(
        self,
        message: str,
        route: Route,
        *,
        at: RoutePart = RoutePart.VALUE,
        why: str,
        way_out: str,
        severity: Severity | None = None,
        related: tuple[RelatedLocation, ...] = (),
        fix: Fix | None = None,
    ) -> Diagnostic:
        """Return a finding of this rule at the value (or key) that stands at `route`; `severity`
        where it is less grave than the rule's own.
        """
        return Diagnostic(
            self.id,
            self.name,
            severity or self.severity,
            message,
            RouteLocation(route, at),
            why,
            way_out,
            related,
            fix,
            "; ".join(self.sources),
        )


def related_at(route: Route, text: str) -> RelatedLocation:
    """Return a second place that takes part in a finding."""
    return RelatedLocation(RouteLocation(route), text)


def related_if_written(case: LintContext, route: Route, text: str) -> tuple[RelatedLocation, ...]:
    """Return a second place as far as the author wrote it: a field that has its default stands
    nowhere, and the name of its target stands for it.
    """
    if _is_written(case.spec, route):
        return (related_at(route, text),)
    target = route[:2]
    return (
        (RelatedLocation(RouteLocation(target, RoutePart.KEY), text),)
        if target[0] == "targets" and _is_written(case.spec, target)
        else ()
    )


def _is_written(part: Any, route: Route) -> bool:
    if not route:
        return True
    if isinstance(part, BaseModel):
        return route[0] in part.model_fields_set and _is_written(
            getattr(part, str(route[0])), route[1:]
        )
    return isinstance(part, Mapping) and route[0] in part and _is_written(part[route[0]], route[1:])


def render_rule_page(rule: Rule) -> str:
    """Return the rule's page as Markdown: what it says, an example of each kind, and where its
    knowledge comes from.
    """
    body = (rule.page or rule.summary).strip()
    parts = [f"# {rule.id} {rule.name}", f"Severity: {rule.severity.value}", body]
    for title, examples in (("Found in", rule.bad), ("Not found in", rule.good)):
        parts += [f"## {title}", *(_shown(example) for example in examples)]
    return (
        "\n\n".join([*parts, "## Sources", "\n".join(f"- {source}" for source in rule.sources)])
        + "\n"
    )


def _shown(example: Example) -> str:
    spec = f"```yaml\n{example.spec.strip()}\n```"
    if example.resolved is None:
        return spec
    held = ", ".join(f"{name} {version}" for name, version in example.resolved.versions.items())
    return f"Resolved to {held} on Python {example.resolved.python}:\n\n{spec}"
