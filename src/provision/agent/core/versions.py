"""Versions and specifiers (PEP 440), and canonical package names (PEP 503)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_Segment = tuple[int, int | str]

_VERSION = re.compile(
    r"""v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<pre>alpha|beta|preview|pre|rc|a|b|c)[-_.]?(?P<pre_n>\d*))?
    (?P<post_part>-(?P<post_bare>\d+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post_n>\d*))?
    (?P<dev_part>[-_.]?dev[-_.]?(?P<dev_n>\d*))?
    (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?""",
    re.VERBOSE | re.ASCII,
)
_CLAUSE = re.compile(r"(===|==|!=|<=|>=|~=|<|>)\s*(\S+)")
_PRE_RANK = {
    "a": 0,
    "alpha": 0,
    "b": 1,
    "beta": 1,
    "c": 2,
    "rc": 2,
    "pre": 2,
    "preview": 2,
}
_BEFORE_PRE, _AFTER_PRE = -1, 3


class UnreadableVersion(ValueError):
    """A version, specifier, marker or requirement that this reader does not understand."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version after PEP 440 normalization.

    `pre` is the rank of alpha, beta or release candidate, and its number; numbers in `local` are
    ordered above words.
    """

    epoch: int
    release: tuple[int, ...]
    pre: tuple[int, int] | None
    post: int | None
    dev: int | None
    local: tuple[_Segment, ...]

    @property
    def public_key(self) -> tuple[object, ...]:
        """Orders versions without their local part."""
        is_dev_of_final = self.post is None and self.dev is not None
        pre = self.pre or (_BEFORE_PRE if is_dev_of_final else _AFTER_PRE, 0)
        post = -1 if self.post is None else self.post
        dev = (1, 0) if self.dev is None else (0, self.dev)
        return (self.epoch, _trimmed(self.release), pre, post, dev)

    @property
    def key(self) -> tuple[object, ...]:
        """Orders versions with their local part; equal keys are equal versions."""
        return (*self.public_key, self.local)


def normalize_name(name: str) -> str:
    """Return the canonical spelling of a package name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_version(text: str) -> Version:
    """Read a PEP 440 version in any of its accepted spellings. Raises UnreadableVersion."""
    match = _VERSION.fullmatch(text.strip().lower())
    if match is None:
        raise UnreadableVersion(f"not a version: {text!r}")
    post = match["post_bare"] or match["post_n"] or "0" if match["post_part"] else None
    return Version(
        epoch=int(match["epoch"] or 0),
        release=tuple(int(part) for part in match["release"].split(".")),
        pre=(_PRE_RANK[match["pre"]], int(match["pre_n"] or 0)) if match["pre"] else None,
        post=None if post is None else int(post),
        dev=int(match["dev_n"] or 0) if match["dev_part"] else None,
        local=tuple(_segment(part) for part in re.split(r"[-_.]", match["local"]))
        if match["local"]
        else (),
    )


def is_same_version(left: str, right: str) -> bool:
    """Return whether two spellings name one version, local part included.

    "2.13" equals "2.13.0", "2.13.0" differs from "2.13.0+cpu". Other strings are compared as they
    are.
    """
    try:
        return read_version(left).key == read_version(right).key
    except UnreadableVersion:
        return left.strip().lower() == right.strip().lower()


def specifier_allows(specifier: str, version: str) -> bool:
    """Return whether a PEP 440 specifier allows a version, pre-releases included.

    Raises UnreadableVersion.
    """
    clauses = [clause.strip() for clause in specifier.split(",") if clause.strip()]
    # Every clause is read, so that an invalid clause raises even after a false one.
    answers = [_clause_allows(clause, version) for clause in clauses]
    return all(answers)


def _clause_allows(clause: str, text: str) -> bool:
    match = _CLAUSE.fullmatch(clause)
    if match is None:
        raise UnreadableVersion(f"not a version specifier: {clause!r}")
    operator, bound = match.groups()
    if operator == "===":
        return text.strip().lower() == bound.lower()
    version = read_version(text)
    if bound.endswith(".*"):
        return _wildcard_allows(operator, bound[:-2], version)
    limit = read_version(bound)
    if operator in ("==", "!="):
        ours = version.key if limit.local else version.public_key
        return (ours == (limit.key if limit.local else limit.public_key)) is (operator == "==")
    if limit.local:
        raise UnreadableVersion(f"{operator} does not allow a local version: {clause!r}")
    if operator == "~=":
        if len(limit.release) < 2:
            raise UnreadableVersion(f"~= needs at least two release numbers: {clause!r}")
        return version.public_key >= limit.public_key and _starts_with(
            version, limit.epoch, limit.release[:-1]
        )
    return _ordered(operator, version, limit)


def _ordered(operator: str, version: Version, limit: Version) -> bool:
    ours, theirs = version.public_key, limit.public_key
    if operator == "<=":
        return ours <= theirs
    if operator == ">=":
        return ours >= theirs
    # PEP 440: "<V" leaves out the pre-releases of V itself, ">V" its post-releases.
    same_release = (version.epoch, _trimmed(version.release)) == (
        limit.epoch,
        _trimmed(limit.release),
    )
    if operator == "<":
        is_final = limit.pre is None and limit.dev is None
        early = version.dev is not None or version.pre is not None
        of_it = limit.post is None or (version.pre is None and version.post == limit.post)
        return ours < theirs and not (is_final and early and of_it and same_release)
    of_it = (
        limit.post is None
        and limit.dev is None
        and version.post is not None
        and version.pre == limit.pre
    )
    return ours > theirs and not (of_it and same_release)


def _wildcard_allows(operator: str, prefix: str, version: Version) -> bool:
    limit = read_version(prefix)
    if (
        operator not in ("==", "!=")
        or limit.pre is not None
        or limit.post is not None
        or limit.dev is not None
        or limit.local
    ):
        raise UnreadableVersion(
            f"a wildcard must follow == or != and a plain release: {operator}{prefix}.*"
        )
    return _starts_with(version, limit.epoch, limit.release) is (operator == "==")


def _starts_with(version: Version, epoch: int, prefix: tuple[int, ...]) -> bool:
    return version.epoch == epoch and _padded(version.release, prefix)[: len(prefix)] == prefix


def _padded(release: tuple[int, ...], like: tuple[int, ...]) -> tuple[int, ...]:
    return release + (0,) * (len(like) - len(release))


def _trimmed(release: tuple[int, ...]) -> tuple[int, ...]:
    end = len(release)
    while end > 1 and release[end - 1] == 0:
        end -= 1
    return release[:end]


def _segment(text: str) -> _Segment:
    return (1, int(text)) if text.isdigit() else (0, text)
