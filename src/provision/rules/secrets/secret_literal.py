"""A secret is written out in the spec.

## What it does

Looks through `env`, `paths`, `training.arguments` and the addresses of indexes for values in the
shape of a known token or private key, and for values with the name of a secret (`HF_TOKEN`,
`WANDB_API_KEY`, `DB_PASSWORD`). References such as `$HF_TOKEN`, placeholders, paths, numbers and
booleans are accepted. The value is never shown.

## Why

A spec lives in a repository. Whoever can read it, a copy of it or its history can use the secret,
and taking the line out later does not help.

## How to fix

Name the secret under `secrets`: `{secret: projects/p/secrets/hf/versions/3}`, `{env: HF_TOKEN}` or
`{colab: HF_TOKEN}`. It is then fetched by the target that uses it. Revoke the secret that was
written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from provision.agent.core.redact import is_secret_like
from provision.diagnostics import Route, Severity
from provision.rules.rule import Example, Findings, LintContext, Rule, examples

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
_SHORTEST = 8
"""Code points: services issue no shorter tokens, and short values of such names are mostly
switches. Our choice.
"""


def _check(context: LintContext) -> Findings:
    yield from _findings(_values(context))


def check_data(data: Mapping[str, Any]) -> Findings:
    """Yield the same findings for data that does not match the schema of a spec."""
    yield from _findings(
        text
        for key in ("env", "indexes", "paths", "training")
        for text in _texts((key,), data.get(key))
    )
    targets = data.get("targets")
    for name, target in targets.items() if isinstance(targets, dict) else ():
        if isinstance(target, dict):
            yield from _findings(_texts(("targets", name, "paths"), target.get("paths")))


def _findings(values: Iterable[tuple[Route, str]]) -> Findings:
    for route, value in values:
        if is_secret_like(value) or (
            len(value) >= _SHORTEST
            and _says_secret(str(route[-1]), value)
            and not _HARMLESS.fullmatch(value)
        ):
            yield RULE.diagnostic(
                f"{'.'.join(map(str, route))} holds a secret",
                route,
                why="Whoever can read this file, a copy of it or its history can use it.",
                help="revoke it, and name it under `secrets` as {env: NAME}, {secret: "
                "projects/...} or {colab: NAME}",
            )


def _values(context: LintContext) -> Iterator[tuple[Route, str]]:
    spec = context.spec
    for name, value in spec.env.items():
        yield ("env", name), value
    for name, index in spec.indexes.items():
        yield ("indexes", name, "url"), index.url
    for route, paths in (
        (("paths",), spec.paths),
        *((("targets", name, "paths"), target.paths) for name, target in spec.targets.items()),
    ):
        for name, path in paths.items():
            yield (*route, name), path
    yield from _texts(("training", "arguments"), spec.training.arguments)


def _texts(route: Route, value: Any) -> Iterator[tuple[Route, str]]:
    if isinstance(value, str):
        yield route, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts((*route, key), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts((*route, index), item)


def _says_secret(name: str, value: str) -> bool:
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
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: []\nenv: {GREETING: '
            "hf_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}\n",
            "hf_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: []\nenv: {WANDB_API_KEY: '
            "0123456789abcdef0123456789abcdef01234567}\n",
            "0123456789abcdef0123456789abcdef01234567",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: []\npaths: {data: '
            "/data/hf_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/x}\n",
            "/data/hf_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/x",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: []\ntraining: {arguments: {hub_token: '
            "correct-horse-battery}}\n",
            "correct-horse-battery",
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: []\nenv: {HF_TOKEN: "$HF_TOKEN", '
        'TOKENIZERS_PARALLELISM: "false", MAX_TOKENS: "204800000"}\n',
        'gpu: none\npython: "3.11"\npackages: []\nenv: {SORT_KEY: '
        'created-at-day}\ntraining: {arguments: {eos_token: "<|endoftext|>"}}\n',
        'gpu: none\npython: "3.11"\npackages: []\nenv: '
        '{GOOGLE_APPLICATION_CREDENTIALS: /run/key.json, API_KEY: "<your key here>"}\n',
        'gpu: none\npython: "3.11"\npackages: []\nsecrets: {HF_TOKEN: {env: HF_TOKEN}}\n',
    ),
)
