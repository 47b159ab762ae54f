"""Every program hides the same secrets, in time that grows with the text."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from provision.agent.core.redact import is_secret_like, redact, secret_spellings
from provision.agent.notebook.output import Printer
from provision.agent.probe.redactor import Redactor
from provision.agent.workbench.status import SecretRedactor
from provision.sanitize import redact as redact_at_home
from tests.agent.probe.test_redact import MULTILINE, PARTS, TOKENS

PROGRAMS: dict[str, Callable[[str], str]] = {
    "command line": redact_at_home,
    "probe": Redactor().text,
    "program on an instance": SecretRedactor().clean,
    "program in a notebook": Printer().clean,
    "installer": lambda text: redact(text, hidden="***"),
}


@pytest.mark.parametrize(
    "text",
    [*TOKENS, "https://me:hun/ter22@pypi.example/simple", MULTILINE.partition("-----END")[0]],
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_each_shape_is_hidden_by_each_program(program: str, text: str) -> None:
    shown = PROGRAMS[program](f"before {text}")
    assert shown.startswith("before")
    assert not any(part in shown for part in (*PARTS, "ter22"))


@pytest.mark.parametrize(
    "token",
    [
        "hf_" + "Ab1" * 6,
        "ghp_" + "Ab1" * 8,
        "AKIA" + "ABCD1234" * 2,
        "sk-" + "Ab1" * 8,
        "glpat-" + "Ab1" * 8,
    ],
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_token_behind_an_escape_is_hidden(program: str, token: str) -> None:
    for before in ("\\n", "\\t", "line\\r\\n"):
        assert token not in PROGRAMS[program](f"{before}{token}"), before


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_token_that_is_glued_to_a_word_is_hidden(program: str) -> None:
    token = "hf_" + "Ab1" * 6
    assert token not in PROGRAMS[program](f"value{token}")


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_follows_bearer_is_hidden_unless_it_is_a_word(program: str) -> None:
    hide = PROGRAMS[program]
    assert "abc12345" not in hide("Authorization: Bearer abc12345")
    assert "abcdefghijklmnop" not in hide("Authorization: Bearer abcdefghijklmnop")
    assert hide("Bearer authentication is needed") == "Bearer authentication is needed"


@pytest.mark.parametrize("program", PROGRAMS)
def test_digests_names_and_versions_stay(program: str) -> None:
    text = (
        "torch 2.13.0+cpu sha256:"
        + "0f" * 32
        + " git hash "
        + "0a1b" * 10
        + " pypi-simple eyJ.a.b npm_install monkey="
        + "a" * 39
    )
    assert PROGRAMS[program](text) == text


@pytest.mark.parametrize(
    "part",
    [
        "key-",
        "key",
        "a.",
        "a-",
        "eyJ-",
        "eyJ.",
        "eyJaaaaaaaaaa.",
        "://",
        "://a:",
        "a://@",
        "?key",
        "&token=",
        "-----BEGIN PRIVATE KEY",
        "a@",
        "bearer ",
        "0a",
        "sk-",
    ],
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_time_grows_with_the_text_and_no_faster(program: str, part: str) -> None:
    text = part * (50_000 // len(part))
    before = time.process_time()
    PROGRAMS[program](text)
    PROGRAMS[program](text + " end")
    assert time.process_time() - before < 5


def test_values_are_hidden_as_they_show_up() -> None:
    secret = 'pass"word\n/x'
    for shown in (secret, repr(secret), "pass%22word%0A%2Fx", 'pass\\"word\\n/x'):
        assert "word" not in redact(f"value {shown}", secret_spellings([secret])), shown


def test_what_looks_secret() -> None:
    assert is_secret_like("hf_" + "Ab1" * 6)
    assert not is_secret_like("hf_transfer")
