"""The probe as it is shipped, for the tests of the training proof."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agent.probe.conftest import build_probe
from tests.agent.probe.conftest import document as expected


@pytest.fixture(scope="session")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_probe(tmp_path_factory.mktemp("probe") / "probe.pyz")


@pytest.fixture(scope="session")
def document() -> Callable[..., dict[str, Any]]:
    return expected
