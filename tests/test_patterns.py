"""No regular expression takes longer than its text is long: each is run on texts made from its own
parts, repeated.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import re._constants as codes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import signal
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pytest

import provision
from provision.agent.core import json_fields

LENGTH = 40_000
LIMIT_S = 0.2
"""CPU seconds. A linear search takes some milliseconds, a quadratic one seconds."""
SEPARATORS = (("", "-"), (" ", ".", "/", ":", "@", "\n"))
NOT_IMPORTED = ("__main__", "hook")


class TooLong(Exception):
    """A search took longer than its limit."""


def patterns() -> dict[str, re.Pattern[str]]:
    """Return every compiled pattern of every module, by place."""
    found: dict[str, re.Pattern[str]] = {}
    for info in pkgutil.walk_packages(provision.__path__, "provision."):
        if not set(info.name.split(".")) & {*NOT_IMPORTED, "_assets"}:
            for name, value in vars(importlib.import_module(info.name)).items():
                found |= {
                    f"{info.name}:{name}{place}": pattern
                    for place, pattern in held(value)
                    if isinstance(pattern.pattern, str)
                }
    return {
        place: pattern
        for place, pattern in sorted(found.items(), reverse=True)
        if list(found.values()).index(pattern) == list(found).index(place)
    }


def held(value: Any, place: str = "") -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Yield the patterns in a value, and where in it."""
    if isinstance(value, re.Pattern):
        yield place, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from held(item, f"{place}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from held(item, f"{place}[{number}]")


def sample(parsed: Any, repeats: list[str], before: str = "") -> str:
    """Return a short text that a parsed pattern matches, and add to `repeats` what leads to each
    repetition, with its body many times.
    """
    text = ""
    for code, argument in parsed:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            least, most, body = argument
            once = sample(body, repeats, before + text)
            if most > 100 and once:
                repeats.append(before + text + once * (LENGTH // len(once)))
            text += once * min(least, 50)
        else:
            text += one_of(code, argument, repeats, before + text)
    return text


def one_of(code: Any, argument: Any, repeats: list[str], before: str) -> str:
    """Return a text for one part of a pattern."""
    if code is codes.LITERAL:
        return chr(argument)
    if code is codes.NOT_LITERAL:
        return "b" if argument == ord("a") else "a"
    if code is codes.ANY:
        return "a"
    if code is codes.IN:
        return next(
            (
                character
                for character in "aA1-_. \tx/:"
                if re.fullmatch(charset(argument), character, re.DOTALL)
            ),
            "",
        )
    if code is codes.SUBPATTERN:
        return sample(argument[3], repeats, before)
    if code is codes.ATOMIC_GROUP:
        return sample(argument, repeats, before)
    if code is codes.ASSERT and argument[0] < 0:
        return sample(argument[1], repeats, before)
    if code is codes.BRANCH:
        return [sample(branch, repeats, before) for branch in argument[1]][-1]
    return ""


def charset(parts: Any) -> str:
    """Return a set of characters as a pattern."""
    categories = {
        codes.CATEGORY_DIGIT: r"\d",
        codes.CATEGORY_SPACE: r"\s",
        codes.CATEGORY_WORD: r"\w",
    }
    categories |= {
        codes.CATEGORY_NOT_DIGIT: r"\D",
        codes.CATEGORY_NOT_SPACE: r"\S",
        codes.CATEGORY_NOT_WORD: r"\W",
    }
    text = ""
    for code, argument in parts:
        if code is codes.NEGATE:
            text += "^"
        elif code is codes.LITERAL:
            text += re.escape(chr(argument))
        elif code is codes.RANGE:
            text += f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
        else:
            text += categories[argument]
    return f"[{text}]"


def texts(pattern: re.Pattern[str], separators: Collection[str]) -> list[str]:
    """Return long texts that a pattern finds hard, if any; parts of it are repeated with each
    separator between them.
    """
    repeats: list[str] = []
    whole = sample(parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE.value), repeats)
    starts = {
        whole[:length] for length in (1, 2, 3, 4, 6, 9, len(whole) // 2, len(whole) - 1, len(whole))
    } - {""}
    words = set(re.findall(r"[A-Za-z]{2,}", pattern.pattern)[:12])
    again = [
        (start + separator) * (LENGTH // len(start + separator))
        for start in sorted(starts | words)
        for separator in separators
    ]
    return [text + end for text in (*repeats, *again) for end in ("", "\x00")]


def uses(place: str) -> set[str]:
    """Return the methods by which a pattern is used.

    One that is passed on may be used by those of its module, or of the reader of JSON fields.
    """
    module, _, name = place.partition(":")
    source = inspect.getsource(importlib.import_module(module))
    if "json_fields import" in source:
        source += inspect.getsource(json_fields)
    methods = r"\.(search|finditer|findall|sub|subn|match|fullmatch)\("
    return set(
        re.findall(rf"\b{re.escape(name)}{methods}", source)
        or re.findall(methods, source)
        or ["finditer"]
    )


def search(pattern: re.Pattern[str], text: str, methods: Collection[str] = ("finditer",)) -> None:
    """Look for a pattern in the ways in which it is used; raises TooLong."""

    def stop(*_: object) -> None:
        raise TooLong(f"{pattern.pattern!r} on {text[:60]!r}...")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
    try:
        if set(methods) - {"match", "fullmatch"}:
            for _ in pattern.finditer(text):
                pass
        for method in {"match", "fullmatch"}.intersection(methods):
            getattr(pattern, method)(text)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.mark.thorough
@pytest.mark.long(after=1)
@pytest.mark.parametrize("separators", SEPARATORS)
def test_every_pattern_takes_time_in_proportion(
    separators: Collection[str], subtests: pytest.Subtests
) -> None:
    for place, pattern in patterns().items():
        with subtests.test(place=place):
            methods = uses(place)
            for text in texts(pattern, separators):
                search(pattern, text, methods)


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    "pattern",
    [
        r"\b([\w-]*(?:token|key)[\w-]*[\"']?\s*[=:]?\s*[\"']?)[A-Fa-f0-9]{40}\b",
        r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b",
        r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
        r"(a+)+b",
        r"x*y",
    ],
)
def test_one_that_takes_longer_is_found(pattern: str) -> None:
    compiled = re.compile(pattern)
    with pytest.raises(TooLong):  # noqa: PT012
        for text in texts(compiled, SEPARATORS[0]):
            search(compiled, text)
