"""Remakes the table of model sizes (parts/models.yaml) from the models' config.json files.

Each file is read from the Hugging Face Hub: from HF_ENDPOINT (default https://huggingface.co), with
HF_TOKEN for models that need a login. The parameters are counted from the shape, as for a folder in
`training.model.id`. Nothing of a model is downloaded but its config.json.

Not touched: which models the table has, and rows whose file cannot be read or has an unknown type
or no count. They are named.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from provision.facts.model_shapes import sizes_of_config
from remaking.index import Unreachable
from remaking.running import Remade, finish, options, rows_of
from remaking.sheets import Row
from remaking.wheels import each

TABLE = "parts/models"
ADDRESS = "https://huggingface.co"
SOURCE = "config.json of the model on the Hugging Face Hub: parameters are counted from its shape"
SIZES = ("parameters", "hidden_size", "layers")
_LARGEST = 1 << 20
_LOGIN = (401, 403, 404)
"""Answers for a model that needs a login, was renamed, or is gone."""

Fetch = Callable[[str], "dict[str, Any] | str"]


def fetch(model: str) -> dict[str, Any] | str:
    """Return a config.json, or why this model has none.

    Raises:
        Unreachable: the Hub does not answer.
    """
    address = os.environ.get("HF_ENDPOINT") or ADDRESS
    if not re.match(r"https?://", address):
        raise Unreachable(f"HF_ENDPOINT is {address!r}, which is not an address")
    request = urllib.request.Request(f"{address.rstrip('/')}/{model}/resolve/main/config.json")
    if token := os.environ.get("HF_TOKEN"):
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            content = answer.read(_LARGEST + 1)
        config = json.loads(content) if len(content) <= _LARGEST else None
    except urllib.error.HTTPError as error:
        if error.code in _LOGIN:
            return f"the Hub answers {error.code}"
        raise Unreachable(f"the Hub answers {error.code} for {model}") from error
    except (OSError, ValueError) as error:
        raise Unreachable(f"the Hub does not give {model}: {type(error).__name__}") from error
    return config if isinstance(config, dict) else "its config.json is not a JSON object"


def read(known: list[Row], fetched: Fetch) -> tuple[list[dict[str, Any]], list[str]]:
    """Return all rows as the files have them, and a line for each row that was not read."""
    rows: list[dict[str, Any]] = []
    skipped: list[str] = []
    for row, config in zip(known, each(lambda row: fetched(row["id"]), known), strict=True):
        sizes = sizes_of_config(config) if isinstance(config, dict) else {}
        new = dict(row)
        if not sizes.keys() >= set(SIZES):
            why = config if isinstance(config, str) else "no count follows from its config.json"
            skipped.append(f"not read: {row['id']}: {why}")
        elif any(row[name] != sizes[name] for name in SIZES):
            new = {**row, **sizes, "source": SOURCE}
        rows.append(new)
    return rows, skipped


def main(arguments: list[str]) -> int:
    """Run the script."""
    chosen = options(arguments, __doc__ or "")
    try:
        rows, skipped = read(rows_of(chosen.tables, TABLE), fetch)
    except Unreachable as error:
        print(f"cannot read anew: {error}", file=sys.stderr)
        return 2
    print("\n".join(skipped), file=sys.stderr)
    part = Remade(TABLE, "rows", ("id",), tuple(rows), whole=False)
    return finish(chosen, (part,), datetime.datetime.now(tz=datetime.UTC).date())


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
