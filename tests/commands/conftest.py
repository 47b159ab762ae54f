"""A spec whose notebook was made, and a genuine report of it, for all tests of reports that come
home.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebook_rig import Home, copied, made, probed, with_colab
from tests.rig import Bench, make_index, make_wheel


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("home")
    wheels = tuple(make_wheel(folder / "wheels", "alpha", version) for version in ("1.0", "2.0"))
    (folder / "project/home").mkdir(parents=True)
    return made(
        Bench(folder / "project", make_index(folder / "index", wheels)), with_colab("alpha")
    )


@pytest.fixture(scope="session")
def genuine(origin: Home, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return probed(origin, tmp_path_factory.mktemp("probe"))


@pytest.fixture
def home(origin: Home, tmp_path: Path) -> Home:
    return copied(origin, tmp_path / "project")
