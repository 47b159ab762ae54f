"""Relation of differences to an error: the symptoms in its text, and the names that it mentions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PureWindowsPath

from packaging.utils import canonicalize_name

from provision.agent.probe.checks import CHECKS
from provision.facts import Facts
from provision.verification.diff.layers import Relevance
from provision.verification.diff.snapshot_model import Cause, ErrorSummary
from provision.verification.error_lookup.missing_modules import find_missing_package
from provision.verification.error_lookup.symptoms import Explanation

_MAX_EXPLANATIONS = 5
_STEP = 10
"""Points between two explanations, the likeliest first."""
_BY_ID, _BY_READING, _NOTE = 100, 80, 50
_IN_LINE, _IN_FRAME = 70, 30
"""Own choice: a symptom that names the check is stronger than a name in the error's last line, and
both are stronger than a file of a package in the traceback."""
_WORD = re.compile(r"[A-Za-z_][\w.-]*\w")
_FRAME = re.compile(r"(?:site|dist)-packages/(\w+)")
_SOURCE_FILE = re.compile(r'File "([^"\n]*)\.py"')
"""A file of a traceback, without its suffix."""
_PATH = re.compile(r"(?<![\w.-])/[^\s'\"():,]+")
_RAISED = re.compile(
    r"^\s*(?:[\w.]+(?:Error|Exception|Warning|Exit|Interrupt)\b|Killed).*$", re.MULTILINE
)
_MAX_LINE = 2000
_CAUSES = {check.id: check.causes for check in CHECKS}


class ErrorRelevance:
    """The relation of causes to one error.

    Args:
        text: The error's text.
        explanations: The symptoms in it, the likeliest first.
        facts: The packages of modules.
    """

    def __init__(self, text: str, explanations: Sequence[Explanation], facts: Facts) -> None:
        self._explanations = explanations[:_MAX_EXPLANATIONS]
        self._facts = facts
        raised = [match.group().strip()[:_MAX_LINE] for match in _RAISED.finditer(text)]
        last = raised[-1] if raised else text.strip().rpartition("\n")[2].strip()[:_MAX_LINE]
        lines = [last, *(explanation.line for explanation in self._explanations)]
        # The folders of a path do not name packages: /data/huggingface/hub.
        self._line_names = self._names_in(_PATH.sub(" ", " ".join(lines)))
        for explanation in self._explanations:
            self._line_names |= {name for name, _ in explanation.missing_packages}
        self._variables = {word for line in lines for word in _WORD.findall(line)}
        frames = _FRAME.findall(text)
        self._frame_names = self._names_in(" ".join(frames[-3:]))
        self._own_files = self._names_in(" ".join(_own_modules(text)))
        main = self._explanations[0] if self._explanations else None
        self.summary = ErrorSummary(
            main.line if main else last,
            main.symptom.cause if main else "",
            main.symptom.fix if main else "",
            main.symptom.id if main else "",
        )

    def names(self, key: str) -> bool:
        """Return whether the error's last line names a package or a variable."""
        area, _, name = key.partition(".")
        if area in ("package", "loaded"):
            return name in self._line_names
        return area == "env" and name in self._variables

    def relate(self, cause: Cause) -> str:
        """Return how a cause is related to the error, "" if it is not."""
        score, reason = self._best(cause)
        return reason if score else ""

    def score(self, cause: Cause) -> int:
        """Return the strength of the relation, 0 for none."""
        return self._best(cause)[0]

    def _best(self, cause: Cause) -> tuple[int, str]:
        scores = [(0, "")]
        shadowed = _shadowed_names(cause)
        if shadowed and not shadowed & (self._line_names | self._own_files):
            return 0, ""
        if shadowed & self._own_files:
            scores.append((_IN_FRAME, "the traceback goes through it"))
        for number, explanation in enumerate(self._explanations):
            points = self._symptom_points(cause, explanation)
            if points:
                symptom = explanation.symptom
                lost = _STEP * number + (_NOTE if explanation.is_note else 0)
                scores.append((max(1, points - lost), f"this error means: {symptom.cause}"))
        keys = [difference.key for difference in cause.differences]
        if points := self._name_points(cause):
            scores.append((points, "the error names it"))
        packages = {key.partition(".")[2] for key in keys[:1] if key.startswith("package.")}
        if packages & self._frame_names:
            scores.append((_IN_FRAME, "the traceback goes through it"))
        best = max(scores)
        return best[0] + (_STEP if len(scores) > 2 else 0), best[1]

    def _name_points(self, cause: Cause) -> int:
        keys = [difference.key for difference in cause.differences]
        shown = {
            str(canonicalize_name(str(item)))
            for difference in cause.differences
            for value in (difference.a, difference.b)
            for item in (value if isinstance(value, list) else ())
        }
        if (shown | _shadowed_names(cause)) & self._line_names:
            return _IN_LINE
        if not any(map(self.names, keys)):
            return 0
        points = _IN_LINE if self.names(keys[0]) else _IN_LINE - _STEP
        if cause.differences[0].relevance is not Relevance.NOTABLE:
            points -= _STEP
        return points if self._names_subject(cause) else points - 2 * _STEP

    def _names_subject(self, cause: Cause) -> bool:
        """Return whether the error names all packages of a problem."""
        return all(name in self._line_names for name in cause.subject.split())

    def _symptom_points(self, cause: Cause, explanation: Explanation) -> int:
        symptom = explanation.symptom
        named = bool({*symptom.rules, *symptom.checks} & {*cause.ids})
        shadowed = _shadowed_names(cause)
        # If the error only passes through the file, other checks of its symptom explain it better.
        if shadowed and not shadowed & self._line_names and tuple(symptom.checks) != ("P03",):
            return 0
        keys = [difference.key for difference in cause.differences]
        is_package = bool(keys) and keys[0].startswith("package.")
        if is_package and not any(map(self.names, keys)) and not self._is_in(keys, symptom.cause):
            return 0
        if named:
            return _BY_ID
        for check in symptom.checks:
            for position, pattern in enumerate(_CAUSES.get(check, ())):
                if pattern != "package.*" and keys and fnmatchcase(keys[0], pattern):
                    if is_package and not self._names_subject(cause):
                        return 0
                    return _BY_READING - min(position, _STEP - 1)
        return 0

    def _is_in(self, keys: Sequence[str], text: str) -> bool:
        names = self._names_in(text)
        return any(key.partition(".")[2] in names for key in keys)

    def _names_in(self, text: str) -> set[str]:
        words = {word.rstrip(".") for word in _WORD.findall(text)}
        words |= {part for word in words for part in word.split(".")}
        names = {str(canonicalize_name(word)) for word in words}
        found = (find_missing_package(word, self._facts) for word in words)
        return {name for name in (*names, *found) if name}


def _shadowed_names(cause: Cause) -> set[str]:
    """Return the shadowed modules of a problem, which are described as "datasets from FILE"."""
    return {
        str(canonicalize_name(str(item).partition(" from ")[0]))
        for difference in cause.differences[:1]
        if difference.key == "packages.shadowed"
        for value in (difference.a, difference.b)
        for item in (value if isinstance(value, list) else ())
    }


def _own_modules(text: str) -> list[str]:
    """Return the modules in a traceback whose files are not those of an installed package.

    A path may have the separators of Windows, whose paths take both.
    """
    paths = (
        PureWindowsPath(found.removesuffix("/__init__"))
        for found in _SOURCE_FILE.findall(text)
        if "site-packages" not in found and "dist-packages" not in found
    )
    return [path.name for path in paths]
