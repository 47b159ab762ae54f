"""A cell contains a secret.

## What it does

Searches all cells, text cells included, for values that have the shape of a known token or private
key (Hugging Face, GitHub, Google, AWS, Slack, OpenAI and others), and for 40 hexadecimal digits
after a word such as `key` or `token`. The value is never shown. Outputs are not searched.

## Why

Notebooks are shared and kept in repositories. Anybody who can read one, a copy of it or its history
can use the secret; removing the line later does not help.

## How to fix

Revoke the secret. Read the new one where it is used: `os.environ["HF_TOKEN"]`, `getpass.getpass()`,
or Colab's secrets (`google.colab.userdata.get("HF_TOKEN")`). A spec lists it under `secrets`.
"""

from __future__ import annotations

import re

from provision.agent.core.redact import redact
from provision.diagnostics import Severity
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.notebook_examples import notebook_example
from provision.rules.rule import Findings, Rule

_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----")
_WORD = re.compile(r"[A-Za-z0-9_.+/=~-]{8,}")


def _check(context: NotebookContext) -> Findings:
    for cell in context.notebook.cells:
        if not _has_secret(cell.source):
            continue
        file = cell.file()
        for number, start in enumerate(file.starts):
            end = file.end_of_line(start)
            line = file.content[start:end]
            if not _has_secret(line):
                continue
            first, last = _range(_without_addresses(line))
            yield RULE.diagnostic(
                f"line {number + 1} of cell {cell.number} contains a secret",
                file.span(start + first, start + last),
                why=(
                    "Anybody who can read this file, a copy of it or its history can use the "
                    "secret."
                ),
                help=(
                    "revoke the secret, and read the new one from os.environ or from Colab's "
                    "secrets"
                ),
            )


def _has_secret(text: str) -> bool:
    text = _without_addresses(text)
    return redact(text) != text


def _without_addresses(text: str) -> str:
    """Return a text of the same length in which user names of addresses are not hidden."""
    return text.replace("://", "   ")


def _range(line: str) -> tuple[int, int]:
    """Return the range of the first secret in a line."""
    block = _KEY_BLOCK.search(line)
    if block is not None:
        return block.span()
    for word in _WORD.finditer(line):
        # A word before the secret may be what makes it one, as in `token = 0123...`.
        if redact(line[: word.end()]) != line[: word.end()]:
            return word.span()
    return 0, len(line)


RULE = Rule(
    id="NTB008",
    name="secret-in-cell",
    severity=Severity.ERROR,
    sources=("token formats that the services publish",),
    check=_check,
    bad=(
        notebook_example(
            "from huggingface_hub import login\nlogin('«hf_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa»')\n"
        ),
        notebook_example("wandb_key = '«0123456789abcdef0123456789abcdef01234567»'\n"),
        notebook_example("!curl -H 'Authorization: Bearer «abcdefgh12345678abcdefgh»' x.example\n"),
    ),
    good=(
        notebook_example("import os\ntoken = os.environ['HF_TOKEN']\n"),
        notebook_example("commit = '0123456789abcdef0123456789abcdef01234567'\n"),
        notebook_example("login(token='hf_...')\n"),
    ),
)
