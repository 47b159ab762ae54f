"""A sandbox in an empty folder, with its clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox_rig import Clients, clients


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Clients]:
    with clients(tmp_path / "sandbox") as made:
        yield made
