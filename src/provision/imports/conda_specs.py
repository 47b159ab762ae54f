"""Translates package specifications of conda, such as `numpy=1.26` or `conda-forge::gxx>=12`."""

from __future__ import annotations

import re
from typing import NamedTuple

_SPEC = re.compile(
    r"(?:(?P<channel>[^\s\[\]]+)::)?(?P<name>[A-Za-z0-9_][A-Za-z0-9_.-]*)"
    r"\s*(?P<rest>[^\[\]]*?)\s*(?P<options>\[.*\])?"
)
_OPTION = re.compile(r"\b(\w+)\s*=\s*(?:'([^']*)'|\"([^\"]*)\"|([^,\]\s]+))")
_FUZZY = re.compile(r"=?(?P<version>[0-9][A-Za-z0-9._!]*?)(?P<star>\.?\*)?")
_EXACT = re.compile(r"==\s*([0-9][A-Za-z0-9._!]*?)(\.\*)?")
_BOUNDS = re.compile(r"(?:(?:>=|<=|>|<|!=|~=)\s*[0-9][A-Za-z0-9._!*]*(?:\s*,\s*|$))+")
_PEP_440 = re.compile(r"[0-9]+(?:\.[0-9]+)*(?:(?:a|b|rc|\.post|\.dev)[0-9]+(?:\.[0-9]+)*)?")


class CondaSpec(NamedTuple):
    """A package specification.

    Args:
        name: Name in the channel, in lower case.
        specifier: The version in PEP 440, "" for any; None if it cannot be translated.
        text: The version as conda writes it.
        channel: Channel that it names, "" for none.
        build: The build string, such as "py311h64a7726_0"; "" for any.
        version: The exact version, "" for a range.
    """

    name: str
    specifier: str | None
    text: str
    channel: str = ""
    build: str = ""
    version: str = ""

    @property
    def requirement(self) -> str:
        """The name with its version: PEP 440 if it can be translated, else the text of conda."""
        if self.specifier is not None:
            return f"{self.name}{self.specifier}"
        return f"{self.name}{self.text if self.text[:1] in '=<>!~' else f'={self.text}'}"


def parse_conda_spec(text: str, *, is_exported: bool = False) -> CondaSpec | None:
    """Return a specification, None if the text is not one.

    Args:
        text: The specification, without a comment.
        is_exported: True in a list that conda wrote, in which `=1.26.4` is an exact version; in a
            list of a person it means any 1.26.4.*.
    """
    match = _SPEC.fullmatch(text.strip())
    if match is None:
        return None
    options = {
        key: single or double or plain
        for key, single, double, plain in _OPTION.findall(match["options"] or "")
    }
    rest = (options.get("version") or match["rest"]).strip()
    build = options.get("build", "")
    # A name, a version and a build may be divided by blanks or by single equals signs.
    parts = re.fullmatch(r"(=?[^\s=<>!~|,]+)(?:=|\s+)([A-Za-z0-9_.*+-]+)", rest)
    if parts is not None:
        rest, build = parts.groups()
    channel = match["channel"] or options.get("channel", "")
    specifier, version = _translate(rest, is_exact=is_exported or bool(build))
    if specifier is None and (re.search(r"\s", rest) or rest[0] not in "=<>!~*0123456789"):
        return None
    return CondaSpec(
        match["name"].lower(), specifier, rest, channel.rpartition("/")[2], build, version
    )


def _translate(text: str, *, is_exact: bool) -> tuple[str | None, str]:
    """Return a version in PEP 440 and, if it is exact, the version alone."""
    if text in ("", "*", "=*", "==*"):
        return "", ""
    if match := _EXACT.fullmatch(text):
        version, star = match.groups()
        if _PEP_440.fullmatch(version):
            return f"=={version}{star or ''}", "" if star else version
        return None, ""
    if match := _FUZZY.fullmatch(text):
        version = match["version"].rstrip(".")
        if not _PEP_440.fullmatch(version):
            return None, ""
        # Without `=` the version is exact (conda's MatchSpec); `1.26.*` and `=1.26` are not.
        is_exact = not match["star"] and (is_exact or not text.startswith("="))
        return (f"=={version}", version) if is_exact else (f"=={version}.*", "")
    if _BOUNDS.fullmatch(text):
        bounds = re.sub(r"\s+", "", text).rstrip(",").split(",")
        # PEP 440 allows a star after == and != only; conda means the same without it.
        plain = [
            bound if bound.startswith("!=") else re.sub(r"\.?\*$", "", bound) for bound in bounds
        ]
        if all(_PEP_440.fullmatch(bound.lstrip("<>=!~").removesuffix(".*")) for bound in plain):
            return ",".join(plain), ""
    return None, ""
