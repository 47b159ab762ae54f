"""Measures lint, `why` and `suggest` on the corpora of tests/knowledge, on each half.

A case belongs to the half that sha256 of its id gives. Rules and symptoms were written with the
seen half alone, until the held-out half was judged (docs/reference/corpora.md). Of the errors of
the second drawing, --show lists the held-out half only with --judge, and of the third drawing
both: who changes symptoms does not read them. The fourth drawing is for reading.

With --resolve, uv resolves the first proposal of each case of `suggest`, which needs a package
index: metadata is read, and nothing is installed (measures/resolution.py).

Usage: python support/measure_knowledge.py [--show lint|why|suggest [--judge] | --resolve]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from provision import source
from provision.commands.shared.spec_text_check import read_text_as_file
from provision.diagnostics import Diagnostic, RouteLocation, Severity
from provision.facts import Facts, load_facts
from provision.facts.lazy_tables import load_symptoms
from provision.rules import LintContext, run_rules
from provision.spec import Spec
from provision.suggest.search import EmptySourceText, Suggestion, find_suggestions
from provision.verification.error_lookup.error_text import extract_error_text
from provision.verification.error_lookup.symptoms import LookupContext, explain_error

CORPORA = Path(__file__).resolve().parents[1] / "tests" / "knowledge"
SEEN, HELD_OUT = "seen", "held out"
_VERSION_FIELDS = ("packages", "python", "cuda", "cuda_toolkit", "training", "platforms")
_ABOUT_PROVISION = frozenset({"GPU010", "PKG014", "PKG022", "PKG026", "PYT002"})
"""Findings about the limits of this program, about secrets, and about builds from source that the
spec has to allow: not about the set of packages.
"""
Case = Mapping[str, Any]


class Figures(Counter[str]):
    """Counts of one half, and a line for each case that went wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.misses: list[str] = []


def half_of(identity: str) -> str:
    """Return the half that a case belongs to."""
    odd = int(hashlib.sha256(identity.encode()).hexdigest(), 16) % 2
    return SEEN if odd else HELD_OUT


def read_corpus(name: str) -> list[Case]:
    """Return the cases of a corpus."""
    text = (CORPORA / f"{name}.yaml").read_text(encoding="utf-8")
    return list(yaml.load(text, yaml.CSafeLoader))


def read_spec(values: Any) -> tuple[Spec | None, tuple[Diagnostic, ...]]:
    """Return the spec of a case and the findings about its text."""
    reader = read_text_as_file(json.dumps(values))
    (document,) = source.read_spec_file(Path("case.yaml"), reader)
    spec, problems = source.validate_source(document)
    return spec, (*document.diagnostics, *problems)


def lint_spec(values: Any, facts: Facts) -> tuple[Diagnostic, ...]:
    """Return what lint reports about a spec."""
    spec, problems = read_spec(values)
    if spec is None:
        return problems
    findings = run_rules(LintContext(spec, EmptySourceText(), facts))
    return (*problems, *(one for one in findings if one.id not in _ABOUT_PROVISION))


def measure_lint(facts: Facts) -> dict[str, Figures]:
    """Return the failing specs that lint finds, and its findings about the working ones."""
    halves = {SEEN: Figures(), HELD_OUT: Figures()}
    for case in read_corpus("specs"):
        figures = halves[half_of(case["id"])]
        findings = lint_spec(case["spec"], facts)
        errors = [one for one in findings if one.severity is Severity.ERROR]
        warnings = [one for one in findings if _warns_about_versions(one)]
        listed = ", ".join(f"{one.id} {one.message}" for one in (*errors, *warnings))
        if case["works"]:
            figures["working"] += 1
            figures["working with an error"] += bool(errors)
            figures["warnings about working"] += len(warnings)
        else:
            figures["failing"] += 1
            figures["failing with an error"] += bool(errors)
            figures["failing with an error or a warning"] += bool(errors or warnings)
        if errors if case["works"] else not errors:
            figures.misses.append(f"{case['id']}: {case['cause']} Reported: {listed or 'nothing'}")
    return halves


def _warns_about_versions(finding: Diagnostic) -> bool:
    where = finding.where
    return (
        finding.severity is Severity.WARNING
        and isinstance(where, RouteLocation)
        and where.route[:1] != ()
        and where.route[0] in _VERSION_FIELDS
    )


def measure_why(facts: Facts, corpus: str = "errors") -> dict[str, Figures]:
    """Return the error texts that are answered, and the answers that name a package of the cause.

    Whether an answer is right has to be read: a name of a package in it is only a sign.
    """
    halves = {SEEN: Figures(), HELD_OUT: Figures()}
    symptoms = load_symptoms()
    for case in read_corpus(corpus):
        figures = halves[half_of(case["id"])]
        text = extract_error_text(case["text"].encode(), "error.txt").text
        found = explain_error(text, symptoms, LookupContext(facts))
        answer = found[0].symptom.id if found else ""
        if not case["known"]:
            figures["of other causes"] += 1
            figures["of other causes, answered"] += bool(found)
            if found:
                figures.misses.append(f"{case['id']}: {answer}")
            continue
        figures["errors"] += 1
        figures["answered"] += bool(found)
        names = {str(canonicalize_name(name)) for name in case["packages"]}
        said = ""
        if found:
            first = found[0]
            said = " ".join((first.symptom.cause, first.symptom.fix, *first.remarks, first.line))
        words = {str(canonicalize_name(word.strip(".,;:()`'\"="))) for word in said.split()}
        figures["answered with a package"] += bool(found and (not names or _name_one(names, words)))
        figures.misses.append(f"{case['id']}: {answer or 'NOTHING'}: {case['cause']}")
    return halves


def _name_one(names: set[str], words: set[str]) -> bool:
    return any(word == name or word.startswith(name) for word in words for name in names)


def measure_suggest(facts: Facts) -> dict[str, Figures]:
    """Return the cases whose first proposal no rule refuses and is a known solution."""
    halves = {SEEN: Figures(), HELD_OUT: Figures()}
    for case in read_corpus("suggestions"):
        figures = halves[half_of(case["id"])]
        figures["cases"] += 1
        spec, problems = read_spec(case["spec"])
        if spec is None:
            figures.misses.append(f"{case['id']}: cannot be read: {problems[0].message}")
            continue
        result = find_suggestions(spec, facts, most=3)
        if not result.suggestions or result.in_the_way:
            left = [one.id for one in result.in_the_way]
            figures.misses.append(f"{case['id']}: no proposal, {result.tried} tried, {left}")
            continue
        first = result.suggestions[0]
        figures["accepted by every rule"] += 1
        figures["without an open companion"] += not open_companions(first)
        if any(_is_fulfilled(first, wanted) for wanted in case["expect"]):
            figures["as the thread solved it"] += 1
            continue
        changes = "; ".join(f"{one.was or '+'} -> {one.now or '-'}" for one in first.changes)
        figures.misses.append(f"{case['id']}: {changes or 'no change'}; wanted {case['expect']}")
    return halves


def print_resolutions(facts: Facts) -> None:
    """Print whether uv resolves the first proposal of each case of `suggest`."""
    from measures.resolution import resolve
    from remaking.index import PipIndex
    from remaking.wheels import Shelf

    counts, shelf = {SEEN: Figures(), HELD_OUT: Figures()}, Shelf(PipIndex())
    for case in read_corpus("suggestions"):
        spec, _ = read_spec(case["spec"])
        result = find_suggestions(spec, facts, most=1) if spec else None
        if result is None or not result.suggestions or result.in_the_way:
            counts[half_of(case["id"])]["no proposal"] += 1
            continue
        proposed = result.suggestions[0].spec
        resolution = resolve(proposed, shelf)
        counts[half_of(case["id"])][resolution.outcome.value] += 1
        lines = ", ".join(package.requirement for package in proposed.packages)
        print(f"{case['id']}: {resolution.outcome.value}: Python {proposed.python}, {lines}")
        if resolution.reason:
            print(textwrap.indent(resolution.reason, "    "))
    for half, figures in counts.items():
        print(f"suggest, {half} half, resolved with uv")
        print("\n".join(format_figures(figures)))


def open_companions(suggestion: Suggestion) -> list[str]:
    """Return the lines that a proposal replaces with a lower bound alone."""
    return [
        change.now
        for change in suggestion.changes
        if change.route[:1] == ("packages",)
        and ">=" in change.now
        and "<" not in change.now
        and "==" not in change.now
    ]


def _is_fulfilled(suggestion: Suggestion, wanted: Mapping[str, str]) -> bool:
    spec = suggestion.spec
    fields = {"cuda": spec.cuda, "python": spec.python, "cuda_toolkit": spec.cuda_toolkit or ""}
    lines = {package.key: package.version for package in spec.packages}
    for name, bound in wanted.items():
        if name == "precision":
            if spec.training.precision.value != bound:
                return False
        elif name in fields:
            if not fields[name][:1].isdigit() or fields[name] not in SpecifierSet(bound):
                return False
        elif name not in lines or not _lies_within(lines[name], SpecifierSet(bound)):
            return False
    return True


def _lies_within(line: str, bound: SpecifierSet) -> bool:
    """Return whether each version that a line names, and its end, is inside a bound."""
    own = list(SpecifierSet(line))
    lower = [one.version for one in own if one.operator in ("==", "===", ">=", "~=", "<=")]
    has_end = any(one.operator in ("==", "===", "<", "<=", "~=") for one in own)
    needs_end = any(one.operator in ("<", "<=", "==") for one in bound)
    inside = all(bound.contains(version.removesuffix(".*"), prereleases=True) for version in lower)
    return inside and (has_end or not needs_end) and bool(own or not list(bound))


def format_figures(figures: Figures) -> Iterator[str]:
    """Yield one line for each figure."""
    for name, count in figures.items():
        yield f"  {count:5d}  {name}"


def main() -> None:
    """Print the figures of both halves, and their misses if wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--show", choices=("lint", "why", "suggest"), help="list the misses")
    mode.add_argument(
        "--resolve", action="store_true", help="resolve the first proposals of `suggest` with uv"
    )
    parser.add_argument("--judge", action="store_true", help="list those of held-out errors too")
    options = parser.parse_args()
    wanted = options.show
    facts = load_facts()
    if options.resolve:
        print_resolutions(facts)
        return
    measures = {
        "lint": measure_lint,
        "why": measure_why,
        "why, second drawing": lambda facts: measure_why(facts, "errors_second"),
        "why, third drawing": lambda facts: measure_why(facts, "errors_third"),
        "why, fourth drawing": lambda facts: measure_why(facts, "errors_fourth"),
        "suggest": measure_suggest,
    }
    for name, measure in measures.items():
        if wanted not in (None, name.split(",")[0]):
            continue
        halves = measure(facts)
        for half in (SEEN, HELD_OUT):
            print(f"{name}, {half} half")
            print("\n".join(format_figures(halves[half])))
            unread = "third" in name or ("second" in name and half == HELD_OUT)
            if wanted and (options.judge or not unread):
                print("\n".join(halves[half].misses))


if __name__ == "__main__":
    main()
