"""The shipped JSON Schemas: of the language with completions, of reports, and of findings."""

from __future__ import annotations

import json

from provision.assets import find_asset
from provision.facts import load_facts
from provision.kinds import registry_in_use
from provision.schema import json_schema


def schema_text() -> str:
    """Return the schema (draft 7) as text."""
    schema = json_schema(load_facts().completions(), registry_in_use.get())
    return json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def document_schema_text(document: str) -> str:
    """Return the schema (draft 2020-12) of a "report" or of the findings of "lint" as text."""
    return find_asset(f"templates/{document}.schema.json").read_text(encoding="utf-8")
