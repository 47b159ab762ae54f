"""Look for combinations that satisfy every rule, and say how well each is backed: by rules only, by uv, or by a verification on a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.version import Version
from pydantic import ValidationError

from provision import rules
from provision.commands.loading import Findings, judge
from provision.diagnostics import Severity
from provision.effects import Reader, Tell, World
from provision.errors import LockError, ProvisionError, UsageError, WorldError
from provision.facts import Facts
from provision.facts import load as load_facts
from provision.facts.versions import parsed
from provision.lock import resolve, unavailable
from provision.rules import Case, Resolved
from provision.rules.suggest import Backed, Evidence, Offer, Suggested, Suggestion, Unwritten, suggest
from provision.spec import Spec
from provision.verification import Report, read_report
from provision.verification.report import LIMIT


def suggest_for_spec(path: Path, world: World, tell: Tell, *, most: int, with_uv: bool) -> Offer:
    """Return combinations near a spec. Raises Findings when its text cannot be understood, SourceError when it cannot be read."""
    facts = load_facts()
    documents = judge(path, world, facts)
    if len(documents) != 1:
        raise UsageError(f"{path} holds {len(documents)} specs", why="this command takes one", hint="put each into a file of its own")
    (document,) = documents
    if document.spec is None:
        raise Findings(document.source, document.diagnostics, "the spec cannot be understood")
    found = suggest(document.spec, facts, most=most)
    return _offer(str(path), document.spec, found, facts, world, tell, folder=path.resolve().parent, with_uv=with_uv)


def suggest_for_words(words: Mapping[str, str], world: World, tell: Tell, *, most: int, with_uv: bool) -> Offer:
    """Return combinations for what was named of gpu, cuda, python, precision, torch and transformers. Raises UsageError for what no spec may hold."""
    facts = load_facts()
    spec = _spec(words, facts)
    free = frozenset({"python", "cuda"} - words.keys())
    named = ", ".join(f"{name} {value}" for name, value in words.items())
    return _offer(named, spec, suggest(spec, facts, most=most, free=free), facts, world, tell, folder=None, with_uv=with_uv)


def _spec(words: Mapping[str, str], facts: Facts) -> Spec:
    packages = [_requirement("torch", words.get("torch", ""))]
    if "transformers" in words:
        packages.append(_requirement("transformers[torch]", words["transformers"]))
    own: dict[str, Any] = {name: words[name] for name in ("gpu", "cuda", "python") if name in words}
    training = {"training": {"precision": words["precision"]}} if "precision" in words else {}
    try:
        return Spec.model_validate({"python": facts.pythons[-1].version, **own, "packages": packages, **training})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = next((str(part) for part in first["loc"] if part in words), "")
        raise UsageError(f"--{option} {words.get(option, '')}: {first['msg']}", hint="write it as a spec has it, see `provision suggest --help`") from None


def _requirement(name: str, version: str) -> str:
    """Return a requirement for "5.13" (any 5.13), "5.13.1" (that one), or specifiers as they are. Raises UsageError for anything else."""
    if not version or version[0] in "<>=!~":
        return name + version
    if parsed(version) is None:
        option = name.partition("[")[0]
        raise UsageError(f"--{option} {version} is no version", hint=f"write it as in --{option} 2.11, 2.11.0 or '>=2.9,<2.12'")
    return f"{name}=={version}" if version.count(".") > 1 else f"{name}=={version}.*"


def _offer(name: str, spec: Spec, found: Suggested, facts: Facts, world: World, tell: Tell, *, folder: Path | None, with_uv: bool) -> Offer:
    reports = tuple(_reports(folder, world)) if folder else ()
    combinations = tuple(_backed(one, facts, reports, world, tell, with_uv=with_uv) for one in found.found)
    return Offer(name, spec, combinations, found.in_the_way, found.tried)


def _backed(suggestion: Suggestion, facts: Facts, reports: Iterable[tuple[str, Report]], world: World, tell: Tell, *, with_uv: bool) -> Backed:
    for name, report in reports:
        if _backs(report, suggestion, facts):
            return Backed(suggestion, Evidence.VERIFIED, f"by {name}")
    if not with_uv:
        return Backed(suggestion, Evidence.RULES, "")
    reasons = [why for _, why in unavailable(suggestion.spec)]
    if reasons:
        return Backed(suggestion, Evidence.RULES, f"not asked of uv: {reasons[0]}")
    tell(f"resolving {', '.join(package.requirement for package in suggestion.spec.packages)}")
    try:
        return _resolved(suggestion, facts, world, tell)
    except LockError as error:
        return Backed(suggestion, Evidence.REFUTED, error.why or error.what)
    except WorldError as error:
        return Backed(suggestion, Evidence.RULES, f"uv could not be asked: {error.what}")


def _resolved(suggestion: Suggestion, facts: Facts, world: World, tell: Tell) -> Backed:
    lock = resolve(suggestion.spec, facts, world, tell)
    for environment in lock.environments:
        resolved = Resolved(lock.versions(environment), lock.python, environment.flavour)
        wrong = [one for one in rules.judge(Case(suggestion.spec, Unwritten(), facts, resolved)) if one.severity is Severity.ERROR]
        if wrong:
            return Backed(suggestion, Evidence.REFUTED, f"uv's set is refused by {wrong[0].id}: {wrong[0].message}")
    return Backed(suggestion, Evidence.RESOLVED, f"{len(lock.packages)} packages")


def _reports(folder: Path, reader: Reader) -> Iterator[tuple[str, Report]]:
    """Give the reports of verifications beside the spec; what cannot be read backs nothing."""
    kept = folder / ".provision" / "reports"
    for name in reader.entries(kept):
        path = kept / name / "report.json"
        if reader.exists(path):
            try:
                yield str(path.relative_to(folder)), read_report(reader.read(path, LIMIT), str(path))
            except ProvisionError:
                continue


def _backs(report: Report, suggestion: Suggestion, facts: Facts) -> bool:
    """Tell whether a device was verified with these very versions: Python, torch and its CUDA, transformers, and the card of every target."""
    if report.verdict != "verified":
        return False
    seen = {str(one.get("key")): one.get("value") for one in report.document["readings"] if isinstance(one, dict)}
    choice, cards = suggestion.choice, {site.card for site in Case(suggestion.spec, Unwritten(), facts).sites}
    cuda = None if choice.cuda in ("auto", "none") else choice.cuda
    same = seen.get("python.minor") == choice.python and (not choice.torch or seen.get("torch.cuda") == cuda)
    versions = (("package.torch", choice.torch), ("package.transformers", choice.transformers))
    capabilities = {card.cc if card else None for card in cards}
    return same and all(not wanted or _public(seen.get(key)) == wanted for key, wanted in versions) and capabilities == {seen.get("gpu.compute_capability")}


def _public(version: object) -> str:
    known = parsed(str(version))
    return known.public if isinstance(known, Version) else ""
