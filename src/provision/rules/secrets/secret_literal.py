"""The spec contains a secret.

## What it does

Searches `env`, `paths`, `training.arguments` and the addresses of indexes for values that look like
a known token or private key, and for values with the name of a secret (`HF_TOKEN`, `WANDB_API_KEY`,
`DB_PASSWORD`). References such as `$HF_TOKEN`, placeholders, paths, numbers and booleans are
accepted. The value is never shown.

## Why

A spec is kept in a repository. Anybody who can read it, a copy of it or its history can use the
secret; removing the line later does not help.

## How to fix

Reference the secret under `secrets`: `{secret: projects/p/secrets/hf/versions/3}`, `{env:
HF_TOKEN}` or `{colab: HF_TOKEN}`. The target that uses it then fetches it. Revoke the secret that
was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from provision.agent.core.redact import is_secret_like
from provision.diagnostics import Route, Severity
from provision.rules.rule import Findings, LintContext, Rule, examples

_NAMES = frozenset(
    {"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "CREDENTIAL", "CREDENTIALS"}
)
_KEYS = frozenset(
    {"API", "ACCESS", "SECRET", "PRIVATE", "AUTH", "ENCRYPTION", "SIGNING", "ACCOUNT"}
)
"""Words before KEY that make it a secret; the value of another key (PARTITION_KEY) is a secret only
if it looks random.
"""
_RANDOM = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9_+/=-]{20,}")
_HARMLESS = re.compile(
    r"[\d.,+-]*|[./~$<{%\[].*|[A-Za-z]:\\.*|\*+|x+|.*(change-?me|your[-_ "
    r"]|example|place[-_ ]?holder|redacted).*",
    re.IGNORECASE | re.DOTALL,
)
_PASSWORDS = re.compile(r"PASSWORD|PASSWD|PASSPHRASE", re.IGNORECASE)
"""Names whose values are secrets however short they are."""
_SHORTEST = 8
"""Code points: services issue no shorter tokens, and short values of such variables are mostly
switches. Our choice.
"""


def _check(context: LintContext) -> Findings:
    spec = context.spec
    # Not `model_dump`, whose serializers pydantic builds at the first use, in 2 ms.
    targets = {
        name: {"env": target.env, "paths": target.paths, "training": target.training}
        for name, target in spec.targets.items()
    }
    training = {"arguments": spec.training.arguments}
    yield from check_data(
        {
            "env": spec.env,
            "indexes": spec.indexes,
            "paths": spec.paths,
            "training": training,
            "targets": targets,
        }
    )


def check_data(data: Mapping[str, Any]) -> Findings:
    """Yield the findings for the data of a spec, even if it does not match the schema."""
    yield from _findings(
        text
        for key in ("env", "indexes", "paths", "training")
        for text in _texts((key,), data.get(key))
    )
    targets = data.get("targets")
    for name, target in targets.items() if isinstance(targets, dict) else ():
        if isinstance(target, dict):
            for key in ("env", "paths", "training"):
                yield from _findings(_texts(("targets", name, key), target.get(key)))


def _findings(values: Iterable[tuple[Route, str]]) -> Findings:
    for route, value in values:
        if is_secret_like(value) or (
            (len(value) >= _SHORTEST or _PASSWORDS.search(str(route[-1])))
            and _is_secret_name(str(route[-1]), value)
            and not _HARMLESS.fullmatch(value)
        ):
            yield RULE.diagnostic(
                f"{'.'.join(map(str, route))} contains a secret",
                route,
                why=(
                    "Anybody who can read this file, a copy of it or its history can use the "
                    "secret."
                ),
                help=(
                    "revoke the secret, create a new one, and reference it under `secrets` as "
                    "{env: NAME}, {secret: projects/...} or {colab: NAME}"
                ),
            )


def _texts(route: Route, value: Any) -> Iterator[tuple[Route, str]]:
    if isinstance(value, str):
        yield route, value
    elif isinstance(value, dict | BaseModel):
        for key, item in value.items() if isinstance(value, dict) else value:
            yield from _texts((*route, key), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts((*route, index), item)


def _is_secret_name(name: str, value: str) -> bool:
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper().replace("-", "_").split("_")
    if not _NAMES.isdisjoint(parts):
        return True
    return parts[-1] == "KEY" and (
        not _KEYS.isdisjoint(parts) or _RANDOM.fullmatch(value) is not None
    )


RULE = Rule(
    id="SEC001",
    name="secret-literal",
    severity=Severity.ERROR,
    sources=("token formats that the services publish", "skypilot-org/skypilot#10741"),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: []\n'
        "env: {GREETING: «hf_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa»}\n",
        'gpu: none\npython: "3.11"\npackages: []\n'
        "env: {WANDB_API_KEY: «0123456789abcdef0123456789abcdef01234567»}\n",
        'gpu: none\npython: "3.11"\npackages: []\n'
        "paths: {data: «/data/hf_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/x»}\n",
        'gpu: none\npython: "3.11"\npackages: []\n'
        "training: {arguments: {hub_token: «correct-horse-battery»}}\n",
        'gpu: none\npython: "3.11"\npackages: []\nenv: {DB_PASSWORD: «abc12»}\n',
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: []\n'
        'env: {HF_TOKEN: "$HF_TOKEN", TOKENIZERS_PARALLELISM: "false", MAX_TOKENS: "204800000"}\n',
        'gpu: none\npython: "3.11"\npackages: []\nenv: {SORT_KEY: created-at-day}\n'
        'training: {arguments: {eos_token: "<|endoftext|>"}}\n',
        'gpu: none\npython: "3.11"\npackages: []\n'
        'env: {GOOGLE_APPLICATION_CREDENTIALS: /run/key.json, API_KEY: "<your key here>"}\n',
        'gpu: none\npython: "3.11"\npackages: []\nsecrets: {HF_TOKEN: {env: HF_TOKEN}}\n',
    ),
)
