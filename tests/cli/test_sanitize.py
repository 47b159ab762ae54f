"""Foreign text made harmless, and addresses without passwords."""

from __future__ import annotations

import sys

import pytest

from provision.agent.core.redact import is_secret_like
from provision.sanitize import escape_control, escape_line, redact
from tests.agent.probe.test_redact import MULTILINE, PARTS, TOKENS


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://bob:s3c@retpw@host/simple", "http://***@host/simple"),
        ("http://bob:a@b@c@host", "http://***@host"),
        ("at https://token@host/x, and mail me@home", "at https://***@host/x, and mail me@home"),
        ("https://one:pw@a/x https://two:p@w@b/y", "https://***@a/x https://***@b/y"),
        ("https://host/path@2 and git@host", "https://host/path@2 and git@host"),
        (
            "boot_disk: hyperdisk-balanced-high-availability",
            "boot_disk: hyperdisk-balanced-high-availability",
        ),
        ("key=sk-" + "a1B2" * 9, "key=***"),
    ],
)
def test_user_names_and_passwords_of_addresses_are_left_out(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_no_character_that_does_harm_counts_as_printable() -> None:
    """`escape_control` leaves text that Python calls printable as it is."""
    harmful = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if escape_control("\n" + chr(code)) != "\n" + chr(code)
    ]
    assert "\u202e" in harmful
    assert "\x1b" in harmful
    assert not any(character.isprintable() for character in harmful)
    assert all(escape_line(character) != character for character in harmful)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://user:pa/ss@host/simple", "http://***@host/simple"),
        ("http://user:p@ss/w0rd@host/simple", "http://***@host/simple"),
        ("https://host/simple?token=TOPSECRET&page=2", "https://host/simple?token=***&page=2"),
        (
            "https://host/f.whl?X-Goog-Signature=abc123#sha256=00",
            "https://host/f.whl?X-Goog-Signature=***#sha256=00",
        ),
        ("https://host:8080/simple/torch?page=2", "https://host:8080/simple/torch?page=2"),
        ("https://host/a@1.0", "https://host/a@1.0"),
    ],
)
def test_no_address_shows_what_opens_it(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize("text", [*TOKENS, MULTILINE.partition("-----END")[0]])
def test_each_shape_that_the_probe_hides_is_hidden_here_too(text: str) -> None:
    redacted = redact(f"before {text}")
    assert redacted.startswith("before")
    assert not any(part in redacted for part in PARTS)


@pytest.mark.parametrize(
    "text",
    [
        "sha256:" + "0a1b" * 16,
        "git hash " + "0a1b" * 10,
        "pypi-simple",
        "eyJ.a.b",
        "npm_install",
        "the token is missing",
    ],
)
def test_what_only_resembles_a_token_stays(text: str) -> None:
    assert redact(text) == text
    assert not is_secret_like(text)
