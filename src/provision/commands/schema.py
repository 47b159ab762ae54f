"""The JSON Schema of the language, with known values from the facts as completions."""

from __future__ import annotations

import json

from provision.facts import load
from provision.schema import json_schema


def schema_text() -> str:
    """Return the schema (draft 7) as text."""
    return json.dumps(json_schema(load().completions()), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
