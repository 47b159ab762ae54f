"""A runtime to run the cell on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.notebook.bench import Runtime


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    return Runtime(tmp_path)


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Runtime:
    """One to make documents with; nothing is run on it."""
    return Runtime(tmp_path_factory.mktemp("plain"))
