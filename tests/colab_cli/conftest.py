"""Fixtures: the real program, one Jupyter server for all tests of a module, and for each test an
account of its own with nothing running.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.colab_cli.control_plane import ControlPlane, serving
from tests.colab_cli.rig import Account, Client, credentials, install, jupyter


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """The real program, installed once."""
    return install(tmp_path_factory)


@pytest.fixture(scope="session")
def machine(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Jupyter server."""
    with jupyter(client, tmp_path_factory.mktemp("machine")) as address:
        yield address


@pytest.fixture
def account(client: Client, machine: str, tmp_path: Path) -> Iterator[Account]:
    """Someone who is signed in, and whose machines are that server."""
    with serving(ControlPlane(machine)) as plane:
        home = tmp_path / "home"
        (home / ".config/colab-cli").mkdir(parents=True)
        (home / ".config/colab-cli/settings.json").write_text('{"enable_update_check": false}')
        yield Account(
            client, plane, home, credentials(tmp_path, client, plane.address), tmp_path / "base"
        )
