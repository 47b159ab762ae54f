"""What differs between two reports, and which difference explains that something works on one device and not on the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from provision.probe.checks import CHECKS
from provision.probe.judging.cases import size
from provision.probe.values import ReadingClass, Status
from provision.verification.report import Report

_FOLLOWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("package.nvidia-*", ("package.torch",)),
    ("package.cuda-*", ("package.torch",)),
    ("package.*triton", ("package.torch",)),
    ("torch.version", ("package.torch",)),
    ("torch.cuda", ("package.torch",)),
    ("torch.git", ("package.torch",)),
    ("torch.arch_list", ("package.torch",)),
    ("packages.shadowed", ("env.PYTHONPATH",)),
    ("packages.*", ("package.*", "python.version")),
    ("python.minor", ("python.version",)),
    ("driver.major", ("driver.version",)),
    ("host.glibc", ("os.version", "os.id")),
    ("host.cpu_flags", ("host.cpu_model",)),
    ("torch.cpu_capability", ("env.ATEN_CPU_CAPABILITY", "host.cpu_model", "host.cpu_flags")),
    ("gpu.vram_bytes", ("gpu.name",)),
    ("gpu.compute_capability", ("gpu.name",)),
    ("gpu.available", ("gpu.count", "package.torch", "driver.version")),
    ("numerics.device", ("gpu.count", "package.torch")),
)
"""What follows from what, as patterns: a difference is told under the first of its parents that differs too."""
_COMPARABLE = (
    "package.torch",
    "package.transformers",
    "package.accelerate",
    "torch.cpu_capability",
    "gpu.name",
    "gpu.count",
    "numerics.device",
    "train.dtype",
    "train.options",
)
"""Hashes of weights are compared where these are equal; else another hash follows from them. (Weights were seen equal over several releases of torch and
transformers on one instruction set, and to differ between AVX2 and AVX512.)"""
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

    @property
    def same(self) -> bool:
        """Whether no identity reading and no check's status differs."""
        return not self.turns and not any(one.kind is ReadingClass.IDENTITY for one in self.differences)


def compare(a: Report, b: Report, names: tuple[str, str]) -> Comparison:
    """Compare two reports; `names` is how they are called. A report compared with itself has no differences."""
    had, has = _readings(a, b), _readings(b, a)
    found = {one.key: one for one in _differing(had, has)}
    onesided = tuple(sorted(key for key in had.keys() ^ has.keys() if key not in found and _kind(had, has, key) is not ReadingClass.NOISE))
    alike = sum(key not in found for key in had.keys() & has.keys())
    grouped = _grouped(found)
    turns = tuple(_turns(a, b, found, grouped))
    explaining = [one.key for turn in turns if turn.breaks for one in turn.causes]
    ranked = sorted(grouped.values(), key=lambda one: (one.key not in explaining, _ORDER.index(one.kind), one.key))
    one, other = (Side(name, report.verdict, report.identity) for name, report in zip(names, (a, b), strict=True))
    return Comparison(one, other, turns, tuple(ranked), onesided, alike)


def sentence(found: Comparison) -> str:
    """Return the comparison in one sentence: the difference that matters where something fails, without a full stop at its end."""
    broken = [turn for turn in found.turns if turn.breaks]
    if broken:
        first = broken[0]
        works, fails = (found.a.name, found.b.name) if first.worse == "b" else (found.b.name, found.a.name)
        cause = spoken(first.causes[0]) if first.causes else "none that is recorded explains this"
        more = f"; so do {len(broken) - 1} more" if len(broken) > 1 else ""
        return f"works on {works}, fails on {fails}: {first.id} {first.title}{more}; the difference that matters: {cause}"
    if found.same:
        return f"{found.a.name} and {found.b.name} are the same environment: no identity reading and no check differs"
    identity = [one for one in found.differences if one.kind is ReadingClass.IDENTITY]
    parts = [f"{_counted(len(found.turns), 'check')} ended otherwise"] if found.turns else []
    parts += [f"{_counted(len(identity), 'difference')} of identity, first {spoken(identity[0])}"] if identity else []
    return f"{found.a.name} and {found.b.name} are not the same: {', '.join(parts)}; none makes a check fail"


def spoken(one: Difference) -> str:
    """Return a difference as words, as in "package.torch 2.11.0+cu128 -> 2.13.0+cpu (and 17 that follow)"."""
    more = f" (and {len(one.followers)} that follow)" if one.followers else ""
    return f"{one.key.removesuffix('_bytes')} {told(one.key, one.a)} -> {told(one.key, one.b)}{more}"


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


def _readings(report: Report, other: Report) -> dict[str, tuple[ReadingClass, Any]]:
    """Return the readings by key. Of one lock, packages that either side found otherwise than locked are readings too."""
    kinds = {kind.value: kind for kind in ReadingClass}
    rows = [row for row in report.document["readings"] if isinstance(row, Mapping) and isinstance(row.get("key"), str) and row.get("class") in kinds]
    found = {row["key"]: (kinds[row["class"]], row.get("value")) for row in rows}
    if "packages.digest" not in found or report.document["lock"].get("environment_digest") != other.document["lock"].get("environment_digest"):
        return found
    locked = {**_otherwise(other, "expected"), **_otherwise(report, "observed")}
    return {**{f"package.{name}": (ReadingClass.IDENTITY, version) for name, version in locked.items()}, **found}


def _otherwise(report: Report, part: str) -> dict[str, Any]:
    packages = report.document.get("packages")
    rows = packages.get("differences") if isinstance(packages, Mapping) else ()
    return {str(row["name"]): row.get(part) for row in rows or () if isinstance(row, Mapping) and "name" in row}


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


def _grouped(found: Mapping[str, Difference]) -> dict[str, Difference]:
    """Return the differences that follow from no other, by key, each with its followers; a group means as much as its weightiest member."""
    top = {key: _top(key, found) for key in found}
    groups: dict[str, list[str]] = {}
    for key, parent in top.items():
        groups.setdefault(parent, [])
        if key != parent:
            groups[parent].append(key)
    kinds = {parent: min((found[key].kind for key in (parent, *members)), key=_ORDER.index) for parent, members in groups.items()}
    return {parent: found[parent]._replace(followers=tuple(members), kind=kinds[parent]) for parent, members in groups.items()}


def _top(key: str, found: Mapping[str, Difference]) -> str:
    parent = next(_parents(key, found), None)
    return _top(parent, found) if parent is not None else key


def _parents(key: str, found: Mapping[str, Difference]) -> Iterator[str]:
    patterns = [parent for child, parents in _FOLLOWS if fnmatchcase(key, child) for parent in parents]
    if found[key].kind is ReadingClass.EXACT:
        patterns += _COMPARABLE
    yield from (other for pattern in patterns for other in found if other != key and fnmatchcase(other, pattern))


def _turns(a: Report, b: Report, found: Mapping[str, Difference], grouped: Mapping[str, Difference]) -> Iterator[Turn]:
    """Yield the checks whose status differs, those that break first; what was left out because of one of them is told under it."""
    checks = [{check["id"]: check for check in report.document["checks"] if isinstance(check, Mapping) and "id" in check} for report in (a, b)]
    moved = {id_: (one, checks[1][id_]) for id_, one in checks[0].items() if id_ in checks[1] and one.get("status") != checks[1][id_].get("status")}
    after = {check.id: check.after for check in CHECKS}
    under = {id_: next((other for other in after.get(_base(id_), ()) if other in moved), None) for id_ in moved}
    turns = [
        _turn(id_, pair, found, grouped)._replace(followers=tuple(_below(id_, under)))
        for id_, pair in moved.items()
        if under[id_] is None or any(one.get("status") == Status.FAIL for one in pair)
    ]
    yield from sorted(turns, key=lambda turn: (not turn.breaks, not turn.required))


def _below(id_: str, under: Mapping[str, str | None]) -> Iterator[str]:
    for other, parent in under.items():
        if parent == id_:
            yield other
            yield from _below(other, under)


def _turn(id_: str, pair: tuple[Mapping[str, Any], Mapping[str, Any]], found: Mapping[str, Difference], grouped: Mapping[str, Difference]) -> Turn:
    one, other = pair
    severity = [Status.PASS, Status.SKIP, Status.WARN, Status.UNKNOWN, Status.FAIL]
    ranks = [next((rank for rank, status in enumerate(severity) if status == check.get("status")), len(severity)) for check in pair]
    worse = other if ranks[1] >= ranks[0] else one
    known = {check.id: check.causes for check in CHECKS}
    patterns = dict.fromkeys([*known.get(_base(id_), ()), *(str(cause) for cause in worse.get("causes") or ())])
    causes = tuple(grouped[top] for top in dict.fromkeys(_top(key, found) for pattern in patterns for key in found if fnmatchcase(key, pattern)))
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
