"""Searches for complete specs that every rule accepts, the least changed and newest first."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from enum import StrEnum
from typing import NamedTuple

from provision.diagnostics import Diagnostic, Location, Route, RouteLocation, Severity
from provision.errors import ProvisionError
from provision.facts import Facts, flavour_of
from provision.facts.versions import require_version
from provision.rules import LintContext, run_rules
from provision.spec import Spec
from provision.suggest.candidates import Candidate, CandidateSpace, SpecChange

MAX_TRIED_SPECS = 400
"""Specs that are put before the rules in one search: about a second. Our choice."""
WARNING_COST = 0.5
"""What a warning weighs that the spec did not have before, against 1 for a changed version. Our
choice.
"""


class Suggestion(NamedTuple):
    """A spec without errors, its changes, and the new warnings about it."""

    spec: Spec
    candidate: Candidate
    changes: tuple[SpecChange, ...]
    remarks: tuple[Diagnostic, ...]

    @property
    def gives_up(self) -> tuple[str, ...]:
        """What is given up, as text."""
        return tuple(change.gives_up for change in self.changes if change.gives_up)


class SearchResult(NamedTuple):
    """The suggestions, the errors that no tried spec avoids, and the number of tried specs."""

    suggestions: tuple[Suggestion, ...]
    in_the_way: tuple[Diagnostic, ...]
    tried: int


class SuggestionStatus(StrEnum):
    """How well a combination is backed."""

    RULES = "rules only"
    RESOLVED = "resolved by uv"
    REFUTED = "uv finds no set of versions"
    REFUSED = "refused once resolved"
    VERIFIED = "verified on a device"


class AssessedSuggestion(NamedTuple):
    """A combination with its evidence; `note` says what backs it, or why nothing more does."""

    suggestion: Suggestion
    evidence: SuggestionStatus
    note: str


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
        """Whether at least one combination satisfies every rule, and uv where it was asked."""
        return not self.in_the_way and any(
            combination.evidence not in (SuggestionStatus.REFUTED, SuggestionStatus.REFUSED)
            for combination in self.combinations
        )


class EmptySourceText:
    """The text of a spec that nobody has written: it stands nowhere."""

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
    first = _search(spec, facts, most, free, written, frozenset(), refuted)
    if first.suggestions or not first.in_the_way:
        return first
    second = _search(
        spec,
        facts,
        most,
        free,
        written,
        frozenset((error.id, error.where) for error in first.in_the_way),
        refuted,
    )
    return second._replace(in_the_way=first.in_the_way, tried=first.tried + second.tried)


def _search(
    spec: Spec,
    facts: Facts,
    most: int,
    free: frozenset[str],
    written: bool,
    aside: frozenset[tuple[str, Location]],
    refuted: tuple[Route, ...],
) -> SearchResult:
    variations = CandidateSpace(spec, facts, free)
    # Of a spec that somebody wrote, lint says that already.
    known = set() if not written else {(one.id, one.message) for one in _judged(spec, facts)}
    queue, found = _Queue(variations), list[Suggestion]()
    always: dict[tuple[str, Location], Diagnostic] | None = None
    for cost, choice in queue:
        changes = variations.changes(choice)
        if any(_covers(one, choice, changes) for one in found):
            continue
        if refuted and not changes:
            queue.widen(cost, choice, refuted)
            continue
        made = variations.to_spec(choice)
        said = _judged(made, facts)
        wrong = {
            (one.id, one.where): one
            for one in said
            if one.severity is Severity.ERROR and (one.id, one.where) not in aside
        }
        if always is None:
            always = wrong
        else:
            always = {key: one for key, one in always.items() if key in wrong}
        if wrong:
            queue.widen(
                cost,
                choice,
                [
                    where.route
                    for one in wrong.values()
                    for where in _places(one)
                    if isinstance(where, RouteLocation)
                ],
            )
            continue
        remarks = tuple(
            one
            for one in said
            if (one.id, one.message) not in known
            and one.severity in (Severity.WARNING, Severity.UNKNOWN)
        )
        if queue.postponed(cost, choice, WARNING_COST * len(remarks)):
            continue
        found.append(Suggestion(made, choice, changes, remarks))
        if len(found) >= most:
            break
    return SearchResult(tuple(found), tuple((always or {}).values()), queue.tried)


class _Queue:
    """The choices, cheapest first and of equal ones the newest, each once."""

    def __init__(self, variations: CandidateSpace) -> None:
        self._variations = variations
        self._heap = [
            (cost, _age(choice, variations.facts), choice)
            for cost, choice in variations.initial_candidates()
        ]
        heapq.heapify(self._heap)
        self._seen: set[Candidate] = set()
        self._weighed: set[Candidate] = set()
        self.tried = 0

    def __iter__(self) -> Iterator[tuple[float, Candidate]]:
        while self._heap and self.tried < MAX_TRIED_SPECS:
            cost, _, choice = heapq.heappop(self._heap)
            if choice in self._seen:
                continue
            self._seen.add(choice)
            self.tried += 1
            yield cost, choice

    def widen(self, cost: float, choice: Candidate, routes: Collection[Route]) -> None:
        """Offer what could be had instead where errors point."""
        for more, other in self._variations.alternatives(choice, routes):
            heapq.heappush(self._heap, (cost + more, _age(other, self._variations.facts), other))

    def postponed(self, cost: float, choice: Candidate, more: float) -> bool:
        """Put a candidate back once if it costs more than was known; return whether it was."""
        if not more or choice in self._weighed:
            return False
        self._weighed.add(choice)
        self._seen.discard(choice)
        heapq.heappush(self._heap, (cost + more, _age(choice, self._variations.facts), choice))
        return True


def _covers(suggestion: Suggestion, choice: Candidate, changes: tuple[SpecChange, ...]) -> bool:
    """Return whether a suggestion makes a candidate redundant: fewer changes, or the same build."""
    these, those = (
        {change.route for change in suggestion.changes},
        {change.route for change in changes},
    )
    return these < those or (
        these == those
        and (suggestion.candidate.torch, suggestion.candidate.cuda) == (choice.torch, choice.cuda)
    )


def _age(choice: Candidate, facts: Facts) -> tuple[tuple[int, ...], ...]:
    """Return a sort key that puts the newest torch, transformers, CUDA and Python first."""
    release = facts.torch_release(choice.torch) if choice.torch else None
    if choice.cuda not in ("auto", "none"):
        usual = release is not None and flavour_of(choice.cuda) == release.default
    else:
        usual = True
    versions = (
        choice.torch,
        choice.transformers,
        "" if choice.cuda in ("auto", "none") else choice.cuda,
        choice.python,
    )
    torch, transformers, cuda, python = (
        tuple(-part for part in require_version(version).release) if version else ()
        for version in versions
    )
    return torch, transformers, (int(not usual),), cuda, python


def _places(finding: Diagnostic) -> tuple[Location, ...]:
    return (finding.where, *(related.where for related in finding.related))


def _judged(spec: Spec, facts: Facts) -> tuple[Diagnostic, ...]:
    return run_rules(LintContext(spec, EmptySourceText(), facts))
