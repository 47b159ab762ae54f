"""What `destroy` removes of code that was unpacked on this machine, and what stays."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from provision.adapters.unpacked_code import remove_code
from provision.agent.core.code_files import CodeFile, CodeManifest, pack_code, unpack_code
from provision.errors import Refused
from provision.targets.local.code import plan_code_removal

FILES = {"train.py": b"1\n", "pkg/model.py": b"2\n"}


def manifest(files: dict[str, bytes]) -> CodeManifest:
    return CodeManifest(
        tuple(
            CodeFile(name, 0o100644, hashlib.sha256(content).hexdigest())
            for name, content in files.items()
        )
    )


def unpack(parent: Path) -> Path:
    listed = manifest(FILES)
    return unpack_code(pack_code(listed, FILES), listed.digest, parent)


def test_unmodified_files_go_and_what_people_wrote_stays(tmp_path: Path) -> None:
    tree = unpack(tmp_path / "code")
    (tree / "pkg/__pycache__").mkdir()
    (tree / "pkg/__pycache__/model.pyc").write_bytes(b"")
    assert not remove_code(tmp_path / "code")
    assert list(tmp_path.iterdir()) == []
    assert not remove_code(tmp_path / "code")

    tree = unpack(tmp_path / "code")
    (tree / "train.py").write_bytes(b"mine\n")
    (tree / "out").mkdir()
    (tree / "out/model").write_bytes(b"x")
    assert remove_code(tmp_path / "code")
    left = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}
    assert left == {"train.py", "out/model"}


def test_links_and_lists_that_lead_elsewhere_remove_nothing_there(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "train.py").write_bytes(FILES["train.py"])
    tree = unpack(tmp_path / "code")
    (tree / "train.py").unlink()
    (tree / "pkg/model.py").unlink()
    (tree / "pkg").rmdir()
    tree.rmdir()
    tree.symlink_to(outside)
    remove_code(tmp_path / "code")
    assert (outside / "train.py").exists()

    forged = tmp_path / "code/aaaaaaaaaaaa"
    (forged / "tree").mkdir(parents=True)
    listed = manifest({"../../../outside/train.py": FILES["train.py"]})
    (forged / "manifest.json").write_text(json.dumps(listed.to_json()))
    remove_code(tmp_path / "code")
    assert (outside / "train.py").exists()


@pytest.mark.parametrize("paths", [["../x"], ["code/other.local"], [], ["code/spec.local", "x"]])
def test_a_record_with_another_folder_is_refused(tmp_path: Path, paths: list[str]) -> None:
    with pytest.raises(Refused, match="is not one that provision creates"):
        plan_code_removal("spec/local", {"paths": paths, "title": "code"}, tmp_path)
    own = plan_code_removal("spec/local", {"paths": ["code/spec.local"]}, tmp_path)
    assert [effect.path for effect in own.effects] == [tmp_path / "code/spec.local"]  # type: ignore[union-attr]
