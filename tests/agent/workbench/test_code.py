"""The code of a project on an instance: unpacked by the program that runs there."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from provision.agent.core.code_files import CodeFile, CodeManifest, code_folder, pack_code
from provision.agent.workbench.cli import main

CONTENT = b"print(1)\n"
MANIFEST = CodeManifest((CodeFile("a.py", 0o100644, hashlib.sha256(CONTENT).hexdigest()),))


def test_the_archive_is_unpacked_below_its_digest(tmp_path: Path) -> None:
    archive = tmp_path / "code.archive"
    archive.write_bytes(pack_code(MANIFEST, {"a.py": CONTENT}))
    assert main(["unpack", str(archive), MANIFEST.digest, str(tmp_path / "code")]) == 0
    assert (code_folder(tmp_path / "code", MANIFEST.digest) / "a.py").read_bytes() == CONTENT


def test_an_archive_that_cannot_be_used_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tmp_path / "code.archive"
    archive.write_bytes(b"PK")
    words = ["unpack", str(archive), MANIFEST.digest, str(tmp_path / "code")]
    assert main(words) == 2
    assert "the code archive is damaged" in capsys.readouterr().err
    (tmp_path / "code").write_text("a file")
    archive.write_bytes(pack_code(MANIFEST, {"a.py": CONTENT}))
    assert main(words) == 2
    assert str(tmp_path / "code") in capsys.readouterr().err
