"""What must not be published is not; what is harmless stays readable."""

from __future__ import annotations

import json

import pytest

from provision.agent.core.redact import REDACTED
from provision.agent.probe.redactor import Redactor

MULTILINE = (
    "-----BEGIN PRIVATE "
    "KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7\n-----END PRIVATE "
    "KEY-----\n"
)
TOKENS = (
    "hf_" + "Ab1" * 6,
    "AIza" + "Sy0_-" * 5,
    "ghp_" + "a1B2" * 5,
    "github_pat_" + "a1B2_" * 5,
    "sk-" + "a1B2" * 9,
    "ya29." + "a1B2" * 5,
    "glpat-" + "a1B2" * 6,
    "npm_" + "a1B2" * 9,
    "pypi-" + "a1B2" * 12,
    "xoxb-" + "a1B2" * 4,
    "AKIA" + "A1B2" * 4,
    "eyJ" + ".".join(["a1B2" * 4] * 3),
    "Authorization: Bearer " + "a1B2" * 5,
    "wandb: api_key " + "0a1b" * 10,
    'WANDB_API_KEY="' + "0a1b" * 10 + '"',
    MULTILINE,
    "https://user:hunter22@pypi.example/simple",
    "https://" + "a1B2" * 6 + "@pypi.example/simple",
    "https://host/file?X-Goog-Signature=" + "a1B2" * 6,
)
"""One text of each shape that a token has, which neither the probe nor what it tells may show."""
PARTS = ("Ab1Ab1", "Sy0_", "a1B2", "A1B2", "0a1b", "MIIE", "BKcw", "hunter22")


@pytest.mark.parametrize(
    "text",
    ["token {0} here", "{0}", "https://u:{0}@host/x", "KEY={0};"],
)
def test_the_value_of_a_secret_goes_wherever_it_stands(text: str) -> None:
    secret = "p4ss/w0rd+x"
    redacted = Redactor([secret]).text(text.format(secret))
    assert secret not in redacted
    assert REDACTED in redacted


def test_spellings_of_a_secret_go_too() -> None:
    secret = 'a"b\n c/d'
    redactor = Redactor([secret])
    for text in (repr(secret), "a%22b%0A%20c%2Fd"):
        assert REDACTED in redactor.text(text), text


def test_each_long_line_of_a_secret_goes() -> None:
    redacted = Redactor([MULTILINE]).text(
        "line: MIIEvQIBADANBgkqhkiG9w0BAQEFAASC and BKcwggSjAgEAAoIBAQC7"
    )
    assert "MIIE" not in redacted
    assert "BKcw" not in redacted


@pytest.mark.parametrize("text", [*TOKENS, "someone.else@example.org"])
def test_known_shapes_go_without_being_declared(text: str) -> None:
    redacted = Redactor().text(f"before {text} after")
    for part in (*PARTS, "someone"):
        assert part not in redacted
    assert redacted.startswith("before")
    assert redacted.endswith("after")


def test_a_key_that_was_cut_off_goes_to_its_end() -> None:
    assert Redactor().text(f"before {MULTILINE.partition('-----END')[0]}") == f"before {REDACTED}"


@pytest.mark.parametrize(
    "text",
    [
        "torch 2.13.0+cpu",
        "a" * 40,
        "sha256:" + "0f" * 32,
        "huggingface_hub",
        "hf_transfer",
        "key error",
        "/home",
        "monkey business",
    ],
)
def test_harmless_text_stays(text: str) -> None:
    assert Redactor(["ab", ""], "/", "root", "localhost").text(text) == text


def test_home_user_and_host_go() -> None:
    redactor = Redactor((), "/home/zelda", "zelda", "castle-42")
    assert (
        redactor.text("/home/zelda/x /home/zelda2 castle-42:8888 zelda: on castle-421")
        == "~/x /home/zelda2 <host>:8888 <user>: on castle-421"
    )


def test_a_tree_is_redacted_in_keys_and_values() -> None:
    tree = {"secret-value": ["secret-value", {"x": ("a", "secret-value", 1, None, True)}]}
    assert "secret-value" not in json.dumps(Redactor(["secret-value"]).tree(tree))


@pytest.mark.parametrize(
    "text",
    [
        "glpat-" + "a1B2" * 6,
        "npm_" + "a1B2" * 9,
        "pypi-" + "a1B2" * 12,
        "xoxb-" + "a1B2" * 5,
        "AKIA" + "A1B2" * 4,
        "eyJ" + "a1B2" * 5 + "." + "a1B2" * 6 + "." + "a1B2" * 6,
        "Authorization: Bearer " + "a1B2" * 6,
        "https://" + "a1B2" * 6 + "@pypi.example/simple",
        "https://x.example/f?X-Goog-Signature=" + "a1B2" * 6 + "&b=1",
        "https://x.example/f?a=1&access_token=" + "a1B2" * 6,
    ],
)
def test_more_shapes_of_tokens_go(text: str) -> None:
    redacted = Redactor().text(f"before {text} after")
    assert "a1B2" not in redacted
    assert "A1B2" not in redacted
    assert redacted.endswith(" after")


@pytest.mark.parametrize(
    "text", ["bearer of news", "pypi-index", "https://x.example/?page=2&sort=name", "xoxo-hugs"]
)
def test_what_only_resembles_a_token_stays(text: str) -> None:
    assert Redactor().text(text) == text


def test_a_host_goes_with_and_without_its_domain() -> None:
    redactor = Redactor((), "", "", "castle-42.c.my-project.internal")
    assert (
        redactor.text("on castle-42.c.my-project.internal, castle-42:8888 and castle-421")
        == "on <host>, <host>:8888 and castle-421"
    )


@pytest.mark.parametrize("user", ["jupyter", "colab", "admin"])
def test_an_account_that_every_machine_has_is_nobodys_name(user: str) -> None:
    assert (
        Redactor((), "/home/jupyter", user).text(f"the {user} kernel in /home/jupyter/x")
        == f"the {user} kernel in ~/x"
    )
