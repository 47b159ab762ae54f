"""Projects that were locked and applied once, copied for each test as if they had been applied in
its folder.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from provision.adapters import RealSystem
from provision.state import dumps, loads
from provision.verification.device_files import digest_of_expectations, probe_digest
from tests.rig import Bench
from tests.support import make_once


def apply_once(
    factory: pytest.TempPathFactory, bench: Bench, name: str, text: str, **variables: str
) -> Bench:
    """Return the bench with spec.yaml applied and verified for real: a copy of a project that is
    made once.
    """

    def make(folder: Path) -> None:
        (folder / "home").mkdir()
        first = Bench(folder, bench.index)
        first.spec(text)
        done = first.run("apply", "spec.yaml", "--yes", **variables)
        assert done.returncode == 0, done.stderr

    copy_applied(make_once(factory, name, make), bench.folder)
    return bench


def copy_applied(project: Path, folder: Path) -> None:
    """Copy a project into a folder: absolute paths are rewritten, and the digest of what its
    verdict was asked, which holds the path of the environment.
    """
    shutil.copytree(project, folder, symlinks=True, dirs_exist_ok=True)
    before, after = str(project).encode(), str(folder).encode()
    own = folder / ".provision"
    state = loads((own / "state.json").read_text(), "state.json")
    for path in (
        path
        for path in own.rglob("*")
        if path.is_file() and not path.is_symlink() and path.name != "state.json"
    ):
        content = path.read_bytes()
        if before in content and b"\0" not in content:
            path.write_bytes(content.replace(before, after))
    for path in (folder / ".provision/reports").glob("*/expectations.json"):
        name, _, target = path.parent.name.partition(".")
        record = state.resource(f"{name}/{target}", "verification")
        asked = digest_of_expectations(json.loads(path.read_text()), probe_digest())
        state = state.with_record(
            f"{name}/{target}", "verification", {**(record or {}), "expectations": asked}
        )
    (own / "state.json").write_text(dumps(state))
    bind(own)


def bind(own: Path) -> None:
    """Make the state of a copied project its own."""
    path = own / "state.json"
    with suppress(ImportError):  # support/run_attacks.py tests sources that bind no state
        from provision.state_store.local import read_current_binding

        path.write_text(
            dumps(
                replace(
                    loads(path.read_text(), "state.json"),
                    binding=read_current_binding(own, RealSystem()),
                )
            )
        )
