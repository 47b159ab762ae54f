"""A runtime to run the cell on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cell.bench import Runtime


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    return Runtime(tmp_path)
