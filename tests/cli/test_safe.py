"""Foreign text made harmless: no part of a password is left in an address."""

from __future__ import annotations

import pytest

from provision.safe import redact


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://bob:s3c@retpw@host/simple", "http://***@host/simple"),
        ("http://bob:a@b@c@host", "http://***@host"),
        ("at https://token@host/x, and mail me@home", "at https://***@host/x, and mail me@home"),
        ("https://one:pw@a/x https://two:p@w@b/y", "https://***@a/x https://***@b/y"),
        ("https://host/path@2 and git@host", "https://host/path@2 and git@host"),
    ],
)
def test_user_names_and_passwords_of_addresses_are_left_out(text: str, shown: str) -> None:
    assert redact(text) == shown
