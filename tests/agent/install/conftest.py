"""A device to install on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.install.bench import Device


@pytest.fixture
def device(tmp_path: Path) -> Device:
    return Device(tmp_path)
