"""What differs between two reports, and which difference explains that something works on one device and not on the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from provision.probe.checks import CHECKS
from provision.probe.judging.cases import size
from provision.probe.values import ReadingClass, Status
from provision.verification.kinship import NOTHING, Kinship, Known, told_requirers
from provision.verification.report import Report

_BANDS: tuple[tuple[str, float], ...] = (("train.loss_*", 0.02), ("*_error", 0.5))
"""Share of the larger value by which measurements may differ. Losses: our choice, runs of one environment repeat exactly. Errors of products: the kinds of
arithmetic lie further apart (tf32 2.9e-4, bf16 1.66e-3 and, split along K, 4.0e-3 relative Frobenius error)."""
_ORDER = (ReadingClass.IDENTITY, ReadingClass.EXACT, ReadingClass.MEASUREMENT, ReadingClass.IDENTITY_WEAK, ReadingClass.CONTEXT)
_FINE = (Status.PASS, Status.WARN)


class Difference(NamedTuple):
    """A reading with two values (None: it is not there), what a difference in it means, and the keys of those that follow from it."""

    key: str
    kind: ReadingClass
    a: Any
    b: Any
    followers: tuple[str, ...] = ()


class Turn(NamedTuple):
    """A check with another status. `worse` names the side ("a" or "b") whose `message` and `fix` are told; `causes` are the differences that can explain it."""

    id: str
    title: str
    a: str
    b: str
    worse: str
    required: bool
    message: str
    fix: str
    causes: tuple[Difference, ...]
    followers: tuple[str, ...] = ()

    @property
    def breaks(self) -> bool:
        """Whether it holds on one side and fails on the other."""
        return Status.FAIL in (self.a, self.b) and (self.a in _FINE or self.b in _FINE)


class Aligned(NamedTuple):
    """A reading of both sides, or of one; `differs` is None where only one side has it."""

    key: str
    kind: ReadingClass
    a: Any
    b: Any
    differs: bool | None


class Pair(NamedTuple):
    """A check as both sides ended it: status and message, "" on a side that did not ask it."""

    id: str
    group: str
    title: str
    a: str
    b: str
    told: tuple[str, str]


class Side(NamedTuple):
    """One of the two: how it is called, its verdict, its identity digest."""

    name: str
    verdict: str
    identity: str


class Comparison(NamedTuple):
    """What two reports say together: checks that ended differently and readings that differ, the telling ones first.

    `onesided` are keys that only one report has, which is no difference: the other did not look. `alike` counts the readings that are equal.
    """

    a: Side
    b: Side
    turns: tuple[Turn, ...]
    differences: tuple[Difference, ...]
    onesided: tuple[str, ...]
    alike: int
    readings: tuple[Aligned, ...]
    checks: tuple[Pair, ...]

    @property
    def same(self) -> bool:
        """Whether no identity reading and no check's status differs."""
        return not self.turns and not any(one.kind is ReadingClass.IDENTITY for one in self.differences)


def compare(a: Report, b: Report, names: tuple[str, str], known: Known = NOTHING) -> Comparison:
    """Compare two reports; `names` is how they are called, `known` what their lock says. A report compared with itself has no differences."""
    had, has = _readings(a, b, known), _readings(b, a, known)
    found = {one.key: one for one in _differing(had, has)}
    onesided = tuple(sorted(key for key in had.keys() ^ has.keys() if key not in found and _kind(had, has, key) is not ReadingClass.NOISE))
    alike = sum(key not in found for key in had.keys() & has.keys())
    tops = _tops(found, _kinship(a, b, known))
    grouped = _grouped(found, tops)
    turns = tuple(_turns(a, b, tops, grouped))
    explaining = [one.key for turn in turns if turn.breaks for one in turn.causes]
    ranked = sorted(grouped.values(), key=lambda one: (one.key not in explaining, _ORDER.index(one.kind), one.key))
    one, other = (Side(name, report.verdict, report.identity) for name, report in zip(names, (a, b), strict=True))
    return Comparison(one, other, turns, tuple(ranked), onesided, alike, tuple(_aligned(had, has, found)), tuple(_pairs(a, b)))


def sentence(found: Comparison) -> str:
    """Return the comparison in one sentence: the difference that matters where something fails, without a full stop at its end."""
    broken = [turn for turn in found.turns if turn.breaks]
    if broken:
        first = broken[0]
        works, fails = (found.a.name, found.b.name) if first.worse == "b" else (found.b.name, found.a.name)
        cause = spoken(first.causes[0]) if first.causes else "none that is recorded explains this"
        more = f"; so {'does' if len(broken) == 2 else 'do'} {len(broken) - 1} more" if len(broken) > 1 else ""
        return f"works on {works}, fails on {fails}: {first.id} {first.title}{more}; the difference that matters: {cause}"
    if found.same:
        return f"{found.a.name} and {found.b.name} are the same environment: no identity reading and no check differs"
    identity = [one for one in found.differences if one.kind is ReadingClass.IDENTITY]
    parts = [f"{_counted(len(found.turns), 'check')} ended otherwise"] if found.turns else []
    parts += [f"{_counted(len(identity), 'difference')} of identity, first {spoken(identity[0])}"] if identity else []
    return f"{found.a.name} and {found.b.name} are not the same: {', '.join(parts)}; none makes a check fail"


def spoken(one: Difference) -> str:
    """Return a difference as words, as in "package.torch 2.11.0+cu128 -> 2.13.0+cpu (and 17 that follow)"."""
    return f"{one.key.removesuffix('_bytes')} {told(one.key, one.a)} -> {told(one.key, one.b)}{followed(one)}"


def followed(one: Difference) -> str:
    """Return how many differences follow from one, in brackets; "" where none does."""
    count = len(one.followers)
    return f" (and {count} that follow{'s' if count == 1 else ''})" if count else ""


def told(key: str, value: Any) -> str:
    """Return a reading's value in at most 60 characters."""
    if value is None:
        return "absent"
    if key.endswith("_bytes") and isinstance(value, int):
        return size(value)
    text = (", ".join(str(part) for part in value) or "none") if isinstance(value, list) else str(value)
    text = text[:19] if text.startswith("sha256:") else text
    return text if len(text) <= 60 else f"{text[:57]}..."


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'s' if number != 1 else ''}"


def _readings(report: Report, other: Report, known: Known) -> dict[str, tuple[ReadingClass, Any]]:
    """Return the readings by key. Packages are readings too, as far as lock and reports tell them.

    With `known`, all that the locks hold; without it, of one lock, those that either side found otherwise than locked.
    """
    kinds = {kind.value: kind for kind in ReadingClass}
    found = {row["key"]: (kinds[str(row.get("class"))], row.get("value")) for row in report.readings if str(row.get("class")) in kinds}
    ours, theirs = (str(one.document["lock"].get("environment_digest")) for one in (report, other))
    if "packages.digest" not in found:
        return found
    if ours in known.held and theirs in known.held:
        locked: dict[str, Any] = {**dict.fromkeys(known.held[theirs]), **known.held[ours], **_otherwise(report, "observed")}
    elif ours == theirs:
        locked = {**_otherwise(other, "expected"), **_otherwise(report, "observed")}
    else:
        return found
    return {**{f"package.{name}": (ReadingClass.IDENTITY, version) for name, version in locked.items()}, **found}


def _kinship(a: Report, b: Report, known: Known) -> Kinship:
    keys = [row["key"] for report in (a, b) for row in report.readings]
    requirers: dict[str, set[str]] = {name: set(names) for name, names in known.requirers.items()}
    for report in (a, b):
        for name, names in told_requirers(report.differences).items():
            requirers.setdefault(name, set()).update(names)
    return Kinship(requirers, frozenset(key.removeprefix("package.") for key in keys if key.startswith("package.")))


def _otherwise(report: Report, part: str) -> dict[str, Any]:
    return {str(row["name"]): row.get(part) for row in report.differences if "name" in row}


def _differing(had: Mapping[str, Any], has: Mapping[str, Any]) -> Iterator[Difference]:
    seen = "host.platform" in had and "host.platform" in has
    for key in sorted(had.keys() | has.keys()):
        kind = _kind(had, has, key)
        # Variables that matter are looked for on every device: one that is not told is not set. Any other missing reading was not taken.
        if kind is ReadingClass.NOISE or not ((key in had and key in has) or (seen and key.startswith("env."))):
            continue
        one, other = (side[key][1] if key in side else None for side in (had, has))
        if not _alike(key, kind, one, other):
            yield Difference(key, kind, one, other)


def _kind(had: Mapping[str, Any], has: Mapping[str, Any], key: str) -> ReadingClass:
    kind: ReadingClass = (had.get(key) or has[key])[0]
    return kind


def _alike(key: str, kind: ReadingClass, one: Any, other: Any) -> bool:
    if kind is ReadingClass.MEASUREMENT and all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other)):
        band = next((share for pattern, share in _BANDS if fnmatchcase(key, pattern)), 0.1)
        return bool(abs(one - other) <= band * max(abs(one), abs(other)))
    return bool(one == other)


def _aligned(had: Mapping[str, Any], has: Mapping[str, Any], found: Mapping[str, Difference]) -> Iterator[Aligned]:
    for key in sorted(had.keys() | has.keys()):
        if (kind := _kind(had, has, key)) is not ReadingClass.NOISE:
            one, other = (side[key][1] if key in side else None for side in (had, has))
            yield Aligned(key, kind, one, other, True if key in found else None if (key in had) != (key in has) else False)


def _pairs(a: Report, b: Report) -> Iterator[Pair]:
    one, other = _checks(a), _checks(b)
    for id_ in dict.fromkeys([*one, *other]):
        rows = (one.get(id_, {}), other.get(id_, {}))
        known = rows[0] or rows[1]
        (a_status, a_told), (b_status, b_told) = ((str(row.get("status") or ""), str(row.get("message") or "")) for row in rows)
        yield Pair(id_, str(known.get("group") or ""), str(known.get("title") or ""), a_status, b_status, (a_told, b_told))


def _checks(report: Report) -> dict[str, Mapping[str, Any]]:
    return {str(check["id"]): check for check in report.document["checks"] if isinstance(check, Mapping) and "id" in check}


def _tops(found: Mapping[str, Difference], kin: Kinship) -> dict[str, str]:
    hashed = frozenset(key for key, one in found.items() if one.kind is ReadingClass.EXACT)
    return {key: kin.top(key, hashed, found) for key in found}


def _grouped(found: Mapping[str, Difference], tops: Mapping[str, str]) -> dict[str, Difference]:
    """Return the differences that follow from no other, by key, each with its followers; a group means as much as its weightiest member."""
    groups: dict[str, list[str]] = {}
    for key, parent in tops.items():
        groups.setdefault(parent, [])
        if key != parent:
            groups[parent].append(key)
    kinds = {parent: min((found[key].kind for key in (parent, *members)), key=_ORDER.index) for parent, members in groups.items()}
    return {parent: found[parent]._replace(followers=tuple(members), kind=kinds[parent]) for parent, members in groups.items()}


def _turns(a: Report, b: Report, tops: Mapping[str, str], grouped: Mapping[str, Difference]) -> Iterator[Turn]:
    """Yield the checks whose status differs, those that break first; what was left out because of one of them is told under it."""
    checks = [_checks(report) for report in (a, b)]
    moved = {id_: (one, checks[1][id_]) for id_, one in checks[0].items() if id_ in checks[1] and one.get("status") != checks[1][id_].get("status")}
    after = {check.id: check.after for check in CHECKS}
    under = {id_: next((other for other in after.get(_base(id_), ()) if other in moved), None) for id_ in moved}
    turns = [
        _turn(id_, pair, tops, grouped)._replace(followers=tuple(_below(id_, under)))
        for id_, pair in moved.items()
        if under[id_] is None or any(one.get("status") == Status.FAIL for one in pair)
    ]
    yield from sorted(turns, key=lambda turn: (not turn.breaks, not turn.required))


def _below(id_: str, under: Mapping[str, str | None]) -> Iterator[str]:
    for other, parent in under.items():
        if parent == id_:
            yield other
            yield from _below(other, under)


def _turn(id_: str, pair: tuple[Mapping[str, Any], Mapping[str, Any]], tops: Mapping[str, str], grouped: Mapping[str, Difference]) -> Turn:
    one, other = pair
    severity = [Status.PASS, Status.SKIP, Status.WARN, Status.UNKNOWN, Status.FAIL]
    ranks = [next((rank for rank, status in enumerate(severity) if status == check.get("status")), len(severity)) for check in pair]
    worse = other if ranks[1] >= ranks[0] else one
    known, told = {check.id: check.causes for check in CHECKS}, worse.get("causes")
    patterns = dict.fromkeys([*known.get(_base(id_), ()), *map(str, told if isinstance(told, list) else ())])
    causes = tuple(grouped[top] for top in dict.fromkeys(tops[key] for pattern in patterns for key in tops if fnmatchcase(key, pattern)))
    return Turn(
        id=id_,
        title=str(one.get("title", "")),
        a=str(one.get("status")),
        b=str(other.get("status")),
        worse="b" if worse is other else "a",
        required=bool(one.get("required") or other.get("required")),
        message=str(worse.get("message") or ""),
        fix=str(worse.get("fix") or ""),
        causes=causes,
    )


def _base(id_: str) -> str:
    return id_.partition(":")[0]
