"""Packages of an earlier environment are copied into the next one, if nothing changed there."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from provision.adapters.environment_copy import (
    copy_packages,
    digest_hashes,
    with_copied_packages,
    with_locked_hashes,
)
from provision.agent.core.record_audit import (
    InstallNote,
    compare_files,
    make_install_note,
    read_record,
)
from provision.agent.install.document import PackageToInstall

SITE = "lib/python3.11/site-packages"
PIN = PackageToInstall("alpha", "1.0", None, ("a" * 64, "b" * 64))
OTHERS_RECORD = "alpha/_vendor/other-1.0.dist-info/RECORD"


def row(path: Path, name: str) -> str:
    content = path.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    return f"{name},sha256={digest},{len(content)}\n"


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """An environment with alpha as uv leaves it: links to a cache, and what uv writes itself."""
    environment = tmp_path / "envs/spec.local-111111111111"
    site, cache = environment / SITE, tmp_path / "cache"
    linked = {"alpha/__init__.py": "VALUE = 1\n", "alpha-1.0.dist-info/METADATA": "Name: alpha\n"}
    written = {
        "../../../bin/alpha": f"#!{environment}/bin/python\nimport alpha\n",
        "../../../bin/plain": "#!/bin/sh\n",
        "alpha-1.0.dist-info/INSTALLER": "uv",
        OTHERS_RECORD: "other/__init__.py,,\n",
    }
    record = ""
    for name, content in (linked | written).items():
        path = Path(os.path.normpath(site / name))
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in linked:
            (cache / name).parent.mkdir(parents=True, exist_ok=True)
            (cache / name).write_text(content)
            path.hardlink_to(cache / name)
        else:
            path.write_text(content)
        record += row(path, name)
    (environment / "bin/alpha").chmod(0o755)
    (site / "alpha-1.0.dist-info/RECORD").write_text(f"{record}alpha-1.0.dist-info/RECORD,,\n")
    write_note(environment)
    return environment


def write_note(environment: Path, **changes: Any) -> None:
    note = make_install_note(read_record(str(environment / SITE / "alpha-1.0.dist-info")))
    entry = {
        "version": "1.0",
        "provenance": "hash-checked",
        "files_checked": 6,
        "locked": digest_hashes(PIN),
        **note.to_json(),
        **changes,
    }
    (environment / "installed.json").write_text(json.dumps({"packages": {"alpha": entry}}))


def copy(earlier: Path, pin: PackageToInstall = PIN) -> tuple[Path, dict[str, dict[str, Any]]]:
    environment = earlier.with_name("spec.local-222222222222")
    note = earlier / "installed.json"
    return environment, copy_packages(earlier, note, environment, "3.11", [pin])


def test_a_copy_is_a_complete_installation(earlier: Path) -> None:
    before = read_record(str(earlier / SITE / "alpha-1.0.dist-info")).sha256
    environment, copied = copy(earlier)
    record = read_record(str(environment / SITE / "alpha-1.0.dist-info"))
    noted = InstallNote.from_install_result({"packages": copied}, "alpha")
    assert compare_files(record, noted, hashed=True).flaws == {}
    assert compare_files(record, noted).unchanged
    assert copied["alpha"]["provenance"] == "hash-checked"
    code = f"{SITE}/alpha/__init__.py"
    assert (environment / code).samefile(earlier / code)
    program = environment / "bin/alpha"
    assert program.read_text().startswith(f"#!{environment}/bin/python\n")
    assert program.stat().st_mode & 0o777 == 0o755
    # The earlier environment stays as it was: neither its program nor its RECORD is a link.
    assert (earlier / "bin/alpha").read_text().startswith(f"#!{earlier}/bin/python\n")
    assert read_record(str(earlier / SITE / "alpha-1.0.dist-info")).sha256 == before
    for name in ("bin/plain", f"{SITE}/alpha-1.0.dist-info/INSTALLER", f"{SITE}/{OTHERS_RECORD}"):
        assert (environment / name).read_bytes() == (earlier / name).read_bytes()
        assert not (environment / name).samefile(earlier / name)


@pytest.mark.parametrize(
    "pin",
    [
        replace(PIN, version="2.0"),
        replace(PIN, hashes=("a" * 64,)),
        replace(PIN, from_source=True),
        replace(PIN, editable="/project"),
        replace(PIN, name="beta"),
    ],
    ids=["version", "hashes", "from source", "editable", "not installed"],
)
def test_another_package_is_left_to_the_installer(earlier: Path, pin: PackageToInstall) -> None:
    environment, copied = copy(earlier, pin)
    assert copied == {}
    assert not environment.exists()


def test_what_was_changed_is_left_to_the_installer(earlier: Path) -> None:
    code = earlier / SITE / "alpha/__init__.py"
    times = code.stat()
    os.utime(code, ns=(times.st_atime_ns, times.st_mtime_ns + 1))
    assert copy(earlier)[1] == {}
    write_note(earlier, record_fits=False)
    assert copy(earlier)[1] == {}
    write_note(earlier, locked=None)
    assert copy(earlier)[1] == {}
    write_note(earlier)
    with (earlier / SITE / "alpha-1.0.dist-info/RECORD").open("a") as record:
        record.write("alpha/more.py,,\n")
    assert copy(earlier)[1] == {}


def test_a_file_that_uv_copied_is_left_to_it(earlier: Path, tmp_path: Path) -> None:
    (tmp_path / "cache/alpha/__init__.py").unlink()
    environment, copied = copy(earlier)
    assert copied == {}
    assert not environment.exists()


def test_a_record_that_leads_out_of_the_environment_copies_nothing(earlier: Path) -> None:
    for name in ("../../../../victim", str(earlier.parent / "victim")):
        victim = earlier.parent / "victim"
        victim.write_text("theirs")
        metadata = earlier / SITE / "alpha-1.0.dist-info/RECORD"
        before = metadata.read_text()
        metadata.write_text(before + row(victim, name))
        write_note(earlier)
        environment, copied = copy(earlier)
        assert copied == {}
        assert not environment.exists()
        metadata.write_text(before)


def test_a_copy_that_fails_is_not_installed(earlier: Path) -> None:
    environment = earlier.with_name("spec.local-222222222222")
    (environment / SITE / "alpha").mkdir(parents=True)
    (environment / SITE / "alpha/__init__.py").write_text("another file")
    assert copy(earlier)[1] == {}
    assert not (environment / SITE / "alpha-1.0.dist-info").exists()


def test_what_only_was_there_before_is_not_copied_later(earlier: Path) -> None:
    """Nothing shows that it came from a locked file."""
    packages = {
        name: {"provenance": name} for name in ("hash-checked", "preinstalled", "reinstalled")
    }
    noted = with_locked_hashes(
        {"packages": packages}, [replace(PIN, name=name) for name in packages]
    )
    locked = [name for name, entry in noted["packages"].items() if "locked" in entry]
    assert locked == ["hash-checked", "reinstalled"]


def test_the_record_of_an_installation_counts_copied_packages() -> None:
    entry = {"version": "1.0", "provenance": "hash-checked"}
    installed = {
        "mode": "shared",
        "counts": {"hash-checked": 1, "preinstalled": 0, "reinstalled": 0},
        "packages": {"beta": entry},
    }
    result = with_copied_packages(installed, {"alpha": {**entry, "provenance": "reinstalled"}})
    assert result["mode"] == "own"
    assert result["counts"] == {"hash-checked": 1, "preinstalled": 0, "reinstalled": 1}
    assert result["packages"].keys() == {"alpha", "beta"}
