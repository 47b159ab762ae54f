"""Files of an environment are compared with the installer's note, or with their RECORDs when there
is none that can be read.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from provision.adapters import RealSystem
from provision.agent.core.record_audit import make_install_note, read_record
from provision.effects.local import Damage

CODE = b"VALUE = 1\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site-packages folder with alpha and beta, as an installer leaves it."""
    site = tmp_path / "lib/python3.11/site-packages"
    for name in ("alpha", "beta"):
        (site / name).mkdir(parents=True)
        (site / f"{name}/__init__.py").write_bytes(CODE)
        (site / f"{name}-1.0.dist-info").mkdir()
        digest = base64.urlsafe_b64encode(hashlib.sha256(CODE).digest()).decode().rstrip("=")
        (site / f"{name}-1.0.dist-info/RECORD").write_text(
            f"{name}/__init__.py,sha256={digest},{len(CODE)}\n{name}-1.0.dist-info/RECORD,,\n"
        )
    return site


def note(site: Path, **of_alpha: Any) -> None:
    packages = {
        name: make_install_note(read_record(str(site / f"{name}-1.0.dist-info"))).to_json()
        for name in ("alpha", "beta")
    }
    (site.parents[2] / "installed.json").write_text(
        json.dumps({"packages": {**packages, "alpha": {**packages["alpha"], **of_alpha}}})
    )


def damage(site: Path, *, hashed: bool = False, shared: bool = False) -> Damage:
    return RealSystem().find_damage(
        site.parents[2], "3.11", ("alpha", "beta", "gone"), hashed=hashed, shared=shared
    )


def test_what_is_compared_is_said(site: Path) -> None:
    assert damage(site) == Damage(compared_by="size")
    assert damage(site, hashed=True) == Damage(compared_by="sha256")
    note(site)
    assert damage(site) == Damage(compared_by="size and modification time")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"packages": 1}', '{"packages": {"alpha": []}}', "[" * 100_000]
)
def test_a_note_that_cannot_be_read_is_none(site: Path, text: str) -> None:
    (site.parents[2] / "installed.json").write_text(text)
    assert damage(site) == Damage(compared_by="size")
    (site / "alpha/__init__.py").unlink()
    assert damage(site).packages == (("alpha", ("alpha/__init__.py is missing",)),)


def test_only_what_was_touched_is_read(site: Path) -> None:
    note(site)
    for name in ("alpha", "beta"):
        about = (site / f"{name}/__init__.py").stat()
        (site / f"{name}/__init__.py").write_bytes(CODE.replace(b"1", b"2"))
        if name == "beta":
            os.utime(site / "beta/__init__.py", ns=(about.st_atime_ns, about.st_mtime_ns))
    assert damage(site).packages == (("alpha", ("alpha/__init__.py was changed",)),)
    assert [name for name, _ in damage(site, hashed=True).packages] == ["alpha", "beta"]


def test_what_never_fitted_is_damage_only_once_it_is_changed(site: Path) -> None:
    (site / "alpha/__init__.py").write_bytes(CODE * 2)
    note(site, record_fits=False)
    assert damage(site).packages == damage(site, hashed=True).packages == ()
    (site / "alpha/__init__.py").write_bytes(CODE * 3)
    assert damage(site).packages == (("alpha", ("alpha/__init__.py has 30 bytes, expected 10",)),)


def test_a_file_that_conda_remade_and_one_of_two_packages_are_fine(site: Path) -> None:
    (site / "alpha/__init__.py").write_bytes(CODE * 2)
    assert damage(site).packages
    note(
        site, snapshot="of another time", remade=["lib/python3.11/site-packages/alpha/__init__.py"]
    )
    assert damage(site).packages == ()
    (site / "alpha/__init__.py").write_bytes(CODE)
    with (site / "beta-1.0.dist-info/RECORD").open("a") as record:
        record.write("alpha/__init__.py,sha256=of-beta,99\n")
    (site.parents[2] / "installed.json").unlink()
    assert damage(site).packages == ()


def test_a_file_that_is_read_at_each_start_and_belongs_to_nobody(site: Path) -> None:
    (site / "evil.pth").write_text("import os\n")
    (site / "stray.py").write_text("")
    assert damage(site).startup_files == ("evil.pth",)
    assert damage(site, shared=True).startup_files == ()
