"""The schema as the command prints it, and a spec's text as the engine reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import fork_server


@pytest.fixture(scope="session")
def schema_text() -> str:
    """What `provision schema` prints."""
    done = fork_server.run(
        [*fork_server.ARGV, "schema"], capture_output=True, text=True, timeout=600, check=True
    )
    return done.stdout


@pytest.fixture(scope="session")
def schema(schema_text: str) -> dict[str, Any]:
    """The schema as a value."""
    document: dict[str, Any] = json.loads(schema_text)
    return document
