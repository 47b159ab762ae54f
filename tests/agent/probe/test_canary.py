"""Nothing private passes into a report, whichever of its texts it was put into, and the identity
stays the same with and without it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from provision.agent.probe.checks import CHECKS
from provision.agent.probe.expectations import parse_expectations
from provision.agent.probe.model import (
    Judgement,
    Reading,
    ReadingClass,
    SelectedCheck,
    Status,
    Threshold,
)
from provision.agent.probe.readings import READING_CLASSES
from provision.agent.probe.redactor import Redactor
from provision.agent.probe.report import JudgedCheck, identity_digest, make_report
from provision.agent.probe.report_json import compact, to_canonical_json
from provision.agent.probe.supervisor import StageRun

HOME, USER, HOST, SECRET = "/home/zelda.fitz", "zelda.fitz", "castle-42.internal", "swordfish-7"
SHAPES = {
    "hugging face": "hf_" + "Q7w9" * 9,
    "google": "AIza" + "Q7w9" * 9,
    "oauth": "ya29." + "Q7w9" * 9,
    "github": "ghp_" + "Q7w9" * 9,
    "openai": "sk-" + "Q7w9" * 9,
    "aws": "AKIA" + "Q7W9" * 4,
    "jwt": "eyJ" + "Q7w9" * 5 + ".Q7w9Q7w9Q7w9.Q7w9Q7w9",
    "url": "https://me:Q7w9Q7w9@example.org/simple",
    "e-mail": "Q7w9.person@example.org",
}
NAMES = {
    "secret": SECRET,
    "home": f"{HOME}/models",
    "user": USER,
    "host": HOST,
    "short host": "castle-42",
}
PRIVATE = ("Q7w9", "Q7W9", SECRET, USER, "castle-42")


class Careless(Redactor):
    """Lets everything pass."""

    def text(self, text: str) -> str:
        return text


def made(
    document: Callable[..., dict[str, Any]],
    canary: str,
    *,
    in_identity: bool,
    redactor: Redactor | None = None,
) -> dict[str, Any]:
    """A report with the canary in every text that something outside the probe can fill."""
    text = f"before {canary} after"
    nested = {"list": [text, {canary: text}], "text": text}
    judged = [
        JudgedCheck(
            SelectedCheck(check, check.id, check.title, None, True),
            Judgement(
                status,
                text,
                nested,
                [nested],
                text,
                text,
                check.threshold or Threshold(1, "u", "own choice"),
            ),
            0.1,
        )
        for check, status in zip(CHECKS, list(Status) * len(CHECKS), strict=False)
    ]
    seen: dict[str, Any] = {
        pattern.replace("*", "some"): nested
        for pattern, kind in READING_CLASSES.items()
        if in_identity or kind is not ReadingClass.IDENTITY
    }
    seen |= {"_packages.installed": {"torch": f"2.0+{canary}"}, "_packages.required_by": {}}
    redactor = redactor or Redactor([SECRET], HOME, USER, HOST)
    run = StageRun("torch", None, "SIGKILL", 1.0, 1.0, 90.0, True, redactor.text(text))
    expected = parse_expectations(
        {**document(packages=[{"name": "torch", "version": "2.1"}]), "simulated": [text]}
    )
    return make_report(expected, judged, seen, [run], redactor, partial=False)


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def leaks(report: Any) -> list[str]:
    return [text for text in texts(report) if any(private in text for private in PRIVATE)]


@pytest.mark.parametrize("canary", [*SHAPES.values(), *NAMES.values()], ids=[*SHAPES, *NAMES])
def test_no_canary_comes_through(document: Callable[..., dict[str, Any]], canary: str) -> None:
    """Names are not looked for in identity readings: these are versions and products, and a host
    called debian must not change os.id.
    """
    report = made(document, canary, in_identity=canary in SHAPES.values())
    for form in (report, json.loads(to_canonical_json(compact(report)))):
        assert leaks(form) == []
    assert sum("before" in text and "after" in text for text in texts(report)) > 3 * len(CHECKS), (
        "the canaries were there"
    )


@pytest.mark.parametrize("canary", [*SHAPES.values(), *NAMES.values()], ids=[*SHAPES, *NAMES])
def test_the_canaries_would_be_seen(document: Callable[..., dict[str, Any]], canary: str) -> None:
    """The control of the test above: where nobody cleans the texts, each check, the stage, the
    packages and the readings hold it.
    """
    assert len(leaks(made(document, canary, in_identity=False, redactor=Careless()))) > 4 * len(
        CHECKS
    )


def test_the_identity_is_that_of_the_readings_which_are_published(
    document: Callable[..., dict[str, Any]],
) -> None:
    report = made(document, SHAPES["github"], in_identity=True)
    published = [
        Reading(row["key"], row["value"], ReadingClass(row["class"])) for row in report["readings"]
    ]
    assert report["digests"]["identity"] == identity_digest(published)


def test_the_identity_does_not_hang_on_who_runs_it_and_where(
    document: Callable[..., dict[str, Any]],
) -> None:
    seen = {
        "os.id": "debian",
        "python.minor": "3.12",
        "package.torch": "2.13.0",
        "user.home_writable": True,
        "host.kernel": "6.1",
    }
    runs = (
        Redactor(),
        Redactor([SECRET], HOME, USER, HOST),
        Redactor((), "/root", "debian", "debian"),
    )
    reports = [
        make_report(
            parse_expectations(document(nonce=str(n) * 16)),
            [],
            {**seen, "host.nofile": n},
            [],
            one,
            False,
        )
        for n, one in enumerate(runs)
    ]
    assert len({report["digests"]["identity"] for report in reports}) == 1
    assert len({report["digests"]["report"] for report in reports}) == 3
