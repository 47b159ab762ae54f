"""Searches for complete specs that every rule accepts, the least changed and newest first."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from provision.diagnostics import Diagnostic, Location, Route, RouteLocation, Severity
from provision.errors import ProvisionError
from provision.facts import Facts, flavour_of
from provision.facts.versions import require_version
from provision.rules import LintContext, run_rules
from provision.spec import Spec
from provision.suggest.candidates import Candidate, CandidateSpace, SpecChange

MAX_TRIED_SPECS = 800
"""Specs that the rules are run on in one search: about two seconds. Our choice."""
WARNING_COST = 0.5
"""Cost of a warning that the spec did not have before; a changed version costs 1. Our choice."""


class Suggestion(NamedTuple):
    """A spec without errors, its changes, and the warnings that are new or about its versions."""

    spec: Spec
    candidate: Candidate
    changes: tuple[SpecChange, ...]
    remarks: tuple[Diagnostic, ...]

    @property
    def gives_up(self) -> tuple[str, ...]:
        """Texts of what is given up."""
        return tuple(change.gives_up for change in self.changes if change.gives_up)


_Age = tuple[tuple[int, ...], ...]


class SearchResult(NamedTuple):
    """The suggestions, the errors that no tried spec avoids, and the number of tried specs."""

    suggestions: tuple[Suggestion, ...]
    in_the_way: tuple[Diagnostic, ...]
    tried: int


class SuggestionStatus(StrEnum):
    """The strongest evidence for a suggestion."""

    RULES = "rules only"
    RESOLVED = "resolved by uv"
    REFUTED = "uv finds no set of versions"
    REFUSED = "refused once resolved"
    VERIFIED = "verified on a device"


class AssessedSuggestion(NamedTuple):
    """A suggestion with its evidence; `note` names it, or the reason why there is no more."""

    suggestion: Suggestion
    evidence: SuggestionStatus
    note: str

    @property
    def is_refused(self) -> bool:
        """True if uv or a rule refuses it once it is resolved."""
        return self.evidence in (SuggestionStatus.REFUTED, SuggestionStatus.REFUSED)


class SuggestionResult(NamedTuple):
    """The suggestions for a spec with their evidence.

    Attributes:
        name: the name of the spec for people.
        written: whether somebody has written the spec.
        combinations: the suggestions.
        in_the_way: errors that no suggestion avoids.
        tried: the number of specs that the rules were run on.
        uv_error: the error that kept uv from running.
    """

    name: str
    written: bool
    combinations: tuple[AssessedSuggestion, ...]
    in_the_way: tuple[Diagnostic, ...]
    tried: int
    uv_error: ProvisionError | None = None

    @property
    def has_usable_combination(self) -> bool:
        """True if a suggestion satisfies every rule, and uv if it was run."""
        return not self.in_the_way and any(
            not combination.is_refused for combination in self.combinations
        )


class EmptySourceText:
    """The text of a spec that nobody has written."""

    def text(self, _route: Route) -> str | None:
        """Return None."""
        return None

    def is_plain(self, _route: Route) -> bool:
        """Return False."""
        return False


def find_suggestions(
    spec: Spec,
    facts: Facts,
    *,
    most: int = 3,
    free: frozenset[str] = frozenset(),
    written: bool = True,
    refuted: tuple[Route, ...] = (),
) -> SearchResult:
    """Return suggestions near a spec, the best first.

    Specs go before the rules by the cost of their changes. If the rules find an error, the
    alternatives of what it points at are tried in their turn. Errors that stay whatever changes do
    not depend on versions: then suggestions without any other error are searched for.

    Args:
        spec: the spec to change.
        facts: the tables.
        most: the number of suggestions to return.
        free: fields ("python", "cuda") that the author left open.
        written: whether somebody has written the spec.
        refuted: routes that take part in a conflict which the rules do not know, as of uv.
    """
    search = _Search(spec, facts, most=most, free=free, written=written, refuted=refuted)
    first = search.run(frozenset())
    if first.suggestions or not first.in_the_way:
        return first
    second = search.run(frozenset((error.id, error.where) for error in first.in_the_way))
    return second._replace(in_the_way=first.in_the_way, tried=first.tried + second.tried)


class _Search:
    def __init__(
        self,
        spec: Spec,
        facts: Facts,
        *,
        most: int,
        free: frozenset[str],
        written: bool,
        refuted: tuple[Route, ...],
    ) -> None:
        self.facts, self.most, self.refuted = facts, most, refuted
        self.written = written
        self.space = CandidateSpace(spec, facts, free)
        # `provision lint` reports these about a spec that somebody has written.
        findings = _lint(spec, facts) if written else ()
        self.known = {(finding.id, finding.message) for finding in findings}

    def run(self, ignored: frozenset[tuple[str, Location]]) -> SearchResult:
        """Return the suggestions without errors other than the ignored ones."""
        queue, suggestions = _Queue(self.space), list[Suggestion]()
        shared: dict[tuple[str, Location], Diagnostic] | None = None
        for cost, candidate in queue:
            changes = self.space.changes(candidate)
            if any(_covers(suggestion, candidate, changes) for suggestion in suggestions):
                continue
            if self.refuted and not changes:
                queue.add_alternatives(cost, candidate, self.refuted)
                continue
            spec = self.space.to_spec(candidate)
            findings = _lint(spec, self.facts)
            errors = _errors(findings, ignored, written=self.written)
            if shared is None:
                shared = errors
            shared = {key: error for key, error in shared.items() if key in errors}
            if errors:
                queue.add_alternatives(cost, candidate, _routes(errors.values()))
                continue
            new = [finding for finding in findings if self._is_new_remark(finding)]
            if queue.postpone(cost, candidate, WARNING_COST * len(new)):
                continue
            remarks = tuple(finding for finding in findings if finding in new or _remains(finding))
            suggestions.append(Suggestion(spec, candidate, changes, remarks))
            if len(suggestions) >= self.most:
                break
        return SearchResult(tuple(suggestions), tuple((shared or {}).values()), queue.tried)

    def _is_new_remark(self, finding: Diagnostic) -> bool:
        is_remark = finding.severity in (Severity.WARNING, Severity.UNKNOWN)
        return is_remark and (finding.id, finding.message) not in self.known


def _remains(finding: Diagnostic) -> bool:
    """Return whether a finding warns: the suggestion does not remove it."""
    return finding.severity is Severity.WARNING


def _is_trouble(finding: Diagnostic, written: bool) -> bool:
    """Return whether the search has to remove a finding.

    A precision that the card lacks is a warning to lint, because it may be emulated; the author of
    a spec is offered one that the card has.
    """
    if finding.severity is Severity.ERROR:
        return True
    where = finding.where
    is_precision = isinstance(where, RouteLocation) and where.route == ("training", "precision")
    return written and is_precision and finding.severity is Severity.WARNING


def _errors(
    findings: Iterable[Diagnostic], ignored: frozenset[tuple[str, Location]], *, written: bool
) -> dict[tuple[str, Location], Diagnostic]:
    errors = (finding for finding in findings if _is_trouble(finding, written))
    by_key = {(error.id, error.where): error for error in errors}
    return {key: error for key, error in by_key.items() if key not in ignored}


def _routes(findings: Iterable[Diagnostic]) -> list[Route]:
    locations: list[Location] = []
    for finding in findings:
        locations += [finding.where, *(related.where for related in finding.related)]
    return [location.route for location in locations if isinstance(location, RouteLocation)]


def _lint(spec: Spec, facts: Facts) -> tuple[Diagnostic, ...]:
    return run_rules(LintContext(spec, EmptySourceText(), facts))


class _Queue:
    """The candidates by cost, of equal ones the newest first, each once."""

    def __init__(self, space: CandidateSpace) -> None:
        self._space = space
        self._heap: list[tuple[float, _Age, Candidate]] = []
        self._seen: set[Candidate] = set()
        self._postponed: set[Candidate] = set()
        self.tried = 0
        for cost, candidate in space.initial_candidates():
            self._push(cost, candidate)

    def __iter__(self) -> Iterator[tuple[float, Candidate]]:
        while self._heap and self.tried < MAX_TRIED_SPECS:
            cost, _, candidate = heapq.heappop(self._heap)
            if candidate in self._seen:
                continue
            self._seen.add(candidate)
            self.tried += 1
            yield cost, candidate

    def add_alternatives(
        self, cost: float, candidate: Candidate, routes: Collection[Route]
    ) -> None:
        """Add the alternatives of a candidate whose errors point at routes."""
        for more, alternative in self._space.alternatives(candidate, routes):
            self._push(cost + more, alternative)

    def postpone(self, cost: float, candidate: Candidate, more: float) -> bool:
        """Put a candidate back once if it costs more than was known; return whether it was."""
        if not more or candidate in self._postponed:
            return False
        self._postponed.add(candidate)
        self._seen.discard(candidate)
        self._push(cost + more, candidate)
        return True

    def _push(self, cost: float, candidate: Candidate) -> None:
        heapq.heappush(self._heap, (cost, _age(candidate, self._space.facts), candidate))


def _covers(suggestion: Suggestion, candidate: Candidate, changes: tuple[SpecChange, ...]) -> bool:
    """Return whether a suggestion makes a candidate redundant: fewer changes, or the same build."""
    suggested = {change.route for change in suggestion.changes}
    routes = {change.route for change in changes}
    other = suggestion.candidate
    same_build = (other.torch, other.cuda) == (candidate.torch, candidate.cuda)
    return suggested < routes or (suggested == routes and same_build)


def _age(candidate: Candidate, facts: Facts) -> _Age:
    """Return a sort key that puts the newest torch, transformers, CUDA and Python first.

    Before CUDA counts whether the public index serves the build by default.
    """
    has_cuda = candidate.cuda not in ("auto", "none")
    is_default = True
    if has_cuda:
        release = facts.torch_release(candidate.torch)
        is_default = release is not None and flavour_of(candidate.cuda) == release.default
    return (
        _newest_first(candidate.torch),
        _newest_first(candidate.transformers),
        (int(not is_default),),
        _newest_first(candidate.cuda if has_cuda else ""),
        _newest_first(candidate.python),
    )


def _newest_first(version: str) -> tuple[int, ...]:
    return tuple(-part for part in require_version(version).release) if version else ()
