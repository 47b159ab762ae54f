"""The protocol of a lint rule: its context, its examples and its findings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, KeysView, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel

from provision.diagnostics import (
    Diagnostic,
    Fix,
    RelatedLocation,
    Route,
    RouteLocation,
    RoutePart,
    Severity,
    Span,
)
from provision.facts import Evidence, Facts
from provision.kinds.base import GpuSettings, Refusal, TargetFacts, TargetModel
from provision.spec import Package, Spec
from provision.target_facts import collect_target_facts, list_refusals

_Cached = TypeVar("_Cached")
_Model = TypeVar("_Model", bound=TargetModel)
Subject = TypeVar("Subject")
"""What a rule checks: a `LintContext`, or the context of a notebook."""


class SpecText(Protocol):
    """The text of a spec as its author wrote it."""

    def text(self, route: Route) -> str | None:
        """Return the scalar at a route without its quotes; None if there is no scalar."""

    def is_plain(self, route: Route) -> bool:
        """Return whether the scalar at a route is written without quotes."""


class ResolvedSet(NamedTuple):
    """The packages that a spec was resolved to.

    Attributes:
        versions: canonical package names with exact versions.
        python: a minor version, as in "3.11".
        flavour: the torch build, as in "cu128"; None without torch.
        built_packages: canonical names of packages that are built from source.
    """

    versions: Mapping[str, str]
    python: str
    flavour: str | None = None
    built_packages: frozenset[str] = frozenset()


@dataclass(frozen=True)
class LintContext:
    """A valid spec with its text, the facts, and on the second run the resolved set."""

    spec: Spec
    source: SpecText
    facts: Facts
    resolved: ResolvedSet | None = None

    @cached_property
    def targets(self) -> tuple[TargetFacts, ...]:
        """Every target with its facts, in the spec's order."""
        return collect_target_facts(self.spec, self.facts)

    def targets_of(self, model: type[_Model]) -> Iterator[tuple[TargetFacts, _Model]]:
        """Yield each target of a kind with its fields."""
        for target in self.targets:
            if isinstance(target.target, model):
                yield target, target.target

    @cached_property
    def devices(self) -> tuple[GpuSettings, ...]:
        """Each pair of `gpu` and `cuda` that applies to a target, once."""
        settings = [target.gpu_settings for target in self.targets]
        return tuple(
            {(device.gpu_route, device.cuda_route): device for device in settings}.values()
        )

    @cached_property
    def refusals(self) -> dict[str, tuple[Refusal, ...]]:
        """Everything that each target does not support, by the target's name."""
        return {
            target.name: list_refusals(self.spec, target, self.facts) for target in self.targets
        }

    @cached_property
    def package_names(self) -> KeysView[str]:
        """Canonical names of the resolved packages, or else of the listed ones, in their order."""
        if self.resolved is not None:
            return self.resolved.versions.keys()
        return dict.fromkeys(package.key for package in self.spec.packages).keys()

    @cached_property
    def first_lines(self) -> dict[str, tuple[Route, Package]]:
        """The first line of each listed package with its route, by its canonical name."""
        lines: dict[str, tuple[Route, Package]] = {}
        for number, package in enumerate(self.spec.packages):
            lines.setdefault(package.key, (("packages", number), package))
        return lines

    @cached_property
    def targets_by_gpu(self) -> dict[Route, TargetFacts]:
        """One target for each `gpu` that applies to a target, by its route."""
        return {target.gpu_settings.gpu_route: target for target in self.targets}

    @cached_property
    def uses_trainer(self) -> bool:
        """True if the program uses Trainer from transformers."""
        return self.spec.framework() == "hf-trainer"

    @property
    def trains_with_trainer(self) -> bool:
        """True if the Trainer of transformers trains a model."""
        return self.uses_trainer and self.spec.training.method != "inference"

    @property
    def python(self) -> str:
        """The Python of the resolved set, or else of the spec, as in "3.11"."""
        return self.resolved.python if self.resolved else self.spec.python

    def flavour_of(self, settings: GpuSettings) -> str | None:
        """Return the torch build of the resolved set, or else the one that settings decide."""
        return self.resolved.flavour if self.resolved else settings.flavour

    @property
    def chosen(self) -> str:
        """The predicate of a package that is resolved, or else of one that is listed."""
        return "among the resolved packages" if self.resolved else "requested"

    @property
    def package_list(self) -> str:
        """The phrase for the list that `package_names` come from."""
        return "among the resolved packages" if self.resolved else "listed"

    @cached_property
    def _cache(self) -> dict[str, Any]:
        return {}

    def cached(self, name: str, compute: Callable[[], _Cached]) -> _Cached:
        """Return the result of `compute`, which several rules share under a name."""
        if name not in self._cache:
            self._cache[name] = compute()
        result: _Cached = self._cache[name]
        return result


Findings = Iterator[Diagnostic]


class Example(NamedTuple):
    """A spec or a notebook on which a rule is tested.

    Attributes:
        spec: the YAML text; "" for a notebook that is checked without a spec.
        at: the text that the finding points at.
        resolved: the set that the spec was resolved to, for the second run or in the lock.
        other_ids: other rules that also report a finding.
        notebook: the cells of a notebook, separated by lines with "# %%".
        colab: the card of the Colab runtime that the notebook was saved on, such as "T4"; "none"
            for a runtime without a card, "" for a notebook of another place.
    """

    spec: str
    at: str = ""
    resolved: ResolvedSet | None = None
    other_ids: tuple[str, ...] = ()
    notebook: str = ""
    colab: str = ""


def example(
    marked: str, resolved: ResolvedSet | None = None, other_ids: tuple[str, ...] = ()
) -> Example:
    """Return an example whose spec marks the text that the finding points at: "gpu: «V100»"."""
    before, _, rest = marked.partition("«")
    at, _, after = rest.partition("»")
    return Example(before + at + after, at, resolved, other_ids)


def examples(*cases: str | Example) -> tuple[Example, ...]:
    """Return examples, some of which consist of a marked spec alone."""
    return tuple(example(case) if isinstance(case, str) else case for case in cases)


class Rule(NamedTuple, Generic[Subject]):
    """One lint check with its documentation and examples.

    Attributes:
        id: three letters of the area and a number, as in "PKG001".
        name: the name in kebab case.
        severity: the highest severity of its findings.
        sources: references for the knowledge behind the rule.
        check: yields the findings for a spec or a notebook. It is called on the spec, and again on
            every resolved set; it does no I/O, and an exception becomes the finding BUG000.
        bad: specs or notebooks that give a finding.
        good: specs or notebooks that give no finding.
        documentation: the text of the page; empty for the docstring of the module of `check`.
        reads_settings: `check` reads `env`, `secrets` or `training`: a target that sets them
            itself is checked on its own, with the merged values.
    """

    id: str
    name: str
    severity: Severity
    sources: tuple[str, ...]
    check: Callable[[Subject], Findings]
    bad: tuple[Example, ...]
    good: tuple[Example, ...]
    documentation: str = ""
    reads_settings: bool = False

    @property
    def page(self) -> str:
        """The text of the rule's page: the summary and sections on what, why and how to fix."""
        return self.documentation or str(sys.modules[self.check.__module__].__doc__)

    @property
    def summary(self) -> str:
        """The first paragraph of the page, on one line."""
        return " ".join(self.page.strip().partition("\n\n")[0].split())

    def diagnostic(
        self,
        message: str,
        where: Route | Span,
        *,
        at: RoutePart = RoutePart.VALUE,
        why: str,
        help: str,  # noqa: A002 (the name of the field of Diagnostic)
        severity: Severity | None = None,
        evidence: Evidence | None = None,
        related: tuple[RelatedLocation, ...] = (),
        fix: Fix | None = None,
        source: str = "",
    ) -> Diagnostic:
        """Return a finding at a route, or at a range of a text.

        Args:
            message: what is wrong, with the values.
            where: the field or the text that the finding points at.
            at: the part of the field.
            why: the consequence.
            help: the fix in words.
            severity: a severity below the rule's own.
            evidence: the fact that the finding rests on; a doubtful fact lowers an error.
            related: further locations.
            fix: the fix as an edit.
            source: the source of the fact, if it is more exact than the rule's own.
        """
        severity = severity or self.severity
        if evidence is not None:
            severity = evidence.cap_severity(severity)
        return Diagnostic(
            self.id,
            self.name,
            severity,
            message,
            where if isinstance(where, Span) else RouteLocation(where, at),
            why,
            help,
            related,
            fix,
            source or "; ".join(self.sources),
        )


def related_at(route: Route, text: str) -> tuple[RelatedLocation, ...]:
    """Return a further location of a finding."""
    return (RelatedLocation(RouteLocation(route), text),)


def related_gpu(target: TargetFacts) -> tuple[RelatedLocation, ...]:
    """Return the location of the GPU of a target."""
    return related_at(target.gpu_settings.gpu_route, "GPU requested here")


def cpu_targets(context: LintContext) -> Iterator[tuple[str, Route]]:
    """Yield the route of each `gpu: none`, once, with the target or spec that it belongs to."""
    routes = dict.fromkeys(device.gpu_route for device in context.devices if device.gpu.is_none)
    for route in routes:
        yield f"target `{route[1]}`" if len(route) > 1 else "the spec", route


def related_if_written(
    context: LintContext, route: Route, text: str
) -> tuple[RelatedLocation, ...]:
    """Return a second location, or the name of its target if the field was left to its default."""
    if is_written(context.spec, route):
        return related_at(route, text)
    target = route[:2]
    if target[0] == "targets" and is_written(context.spec, target):
        return (RelatedLocation(RouteLocation(target, RoutePart.KEY), text),)
    return ()


def is_written(value: Any, route: Route) -> bool:
    """Return whether the author of a part wrote the field at a route in it."""
    for part in route:
        if isinstance(value, BaseModel):
            if part not in value.model_fields_set:
                return False
            value = getattr(value, str(part))
        elif isinstance(value, Mapping) and part in value:
            value = value[part]
        else:
            return False
    return True


def render_rule_page(rule: Rule[Any]) -> str:
    """Return the rule's page as Markdown, with its examples and sources."""
    parts = [f"# {rule.id} {rule.name}", f"Severity: {rule.severity.value}", rule.page.strip()]
    for title, examples in (("Found in", rule.bad), ("Not found in", rule.good)):
        parts += [f"## {title}", *map(_render_example, examples)]
    parts += ["## Sources", "\n".join(f"- {source}" for source in rule.sources)]
    return "\n\n".join(parts) + "\n"


def _render_example(example: Example) -> str:
    parts = []
    if example.spec:
        parts.append(f"```yaml\n{example.spec.strip()}\n```")
    if example.resolved is not None:
        versions = (f"{name} {version}" for name, version in example.resolved.versions.items())
        listed = ", ".join(versions)
        parts.insert(0, f"Resolved to {listed} on Python {example.resolved.python}:")
    if example.notebook:
        card = "without a GPU" if example.colab == "none" else f"with a {example.colab}"
        place = f"Saved by Colab, on a runtime {card}" if example.colab else "Cells of a notebook"
        cells = f"```python\n{example.notebook.strip()}\n```"
        parts += [f"{place}{', with the spec above' if example.spec else ''}:", cells]
    return "\n\n".join(parts)
