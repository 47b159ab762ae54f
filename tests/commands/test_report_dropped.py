"""Reports put into the folder of their target by hand: filed by the next command, or named once and
set aside.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.notebook_rig import Home, changed


def _forged(genuine: bytes) -> bytes:
    def change(document: dict[str, Any]) -> None:
        document["subject"]["nonce"] = "f" * 32

    return changed(genuine, change)


@pytest.mark.long(after=2)
@pytest.mark.parametrize("name", ["report (1).json", "report.json", "REPORT.JSON"])
@pytest.mark.parametrize(("verb", "code"), [("status", 1), ("apply", 0), ("verify", 0)])
def test_a_dropped_report_is_filed(
    home: Home, genuine: bytes, name: str, verb: str, code: int
) -> None:
    (home.reports / name).write_bytes(genuine)
    more = {"status": [], "apply": ["--target", "colab", "--yes"], "verify": ["--target", "colab"]}[
        verb
    ]
    done = home.bench.run(verb, "spec.yaml", *more)
    assert done.returncode == code, (
        done.stdout + done.stderr
    )  # status looks at the local target too, whose environment is not here
    assert "imported the report in the inbox of spec/colab" in done.stderr
    assert "verified" in done.stdout.lower()
    assert sorted(path.name for path in home.reports.iterdir()) == ["report.html", "report.json"]
    assert (home.reports / "report.json").read_bytes() == genuine
    again = home.bench.run("status", "spec.yaml")
    assert "dropped" not in again.stderr
    assert "verified at" in again.stdout


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", ["report (1).json", "report.json"])
def test_a_refused_one_is_named_once_and_set_aside(home: Home, genuine: bytes, name: str) -> None:
    (home.reports / name).write_bytes(_forged(genuine))
    done = home.bench.run("status", "spec.yaml")
    assert "from a different version of the notebook for spec/colab" in done.stderr
    assert "will not be processed again" in done.stderr
    assert not (home.reports / name).exists()
    assert (home.reports / "refused" / name).read_bytes() == _forged(genuine)
    assert "its nonce is ffff" in (home.reports / "refused" / f"{name}.txt").read_text()
    assert home.bench.run("status", "spec.yaml").stderr == ""
    (home.reports / name).write_bytes(b"{")
    assert "is damaged" in home.bench.run("status", "spec.yaml").stderr
    assert (home.reports / "refused" / name.replace(".json", "-2.json")).read_bytes() == b"{"
    assert "spec/colab#verification" not in home.state


def test_of_several_the_fitting_one_is_filed(home: Home, genuine: bytes) -> None:
    (home.reports / "a.json").write_bytes(_forged(genuine))
    (home.reports / "b.json").write_bytes(genuine)
    (home.reports / "notes.txt").write_text("mine")
    (home.reports / "status.json").write_text('{"schema": "provision.agent.notebook-status/1"}')
    assert home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes").returncode == 0
    assert sorted(path.name for path in home.reports.iterdir()) == [
        "notes.txt",
        "refused",
        "report.html",
        "report.json",
        "status.json",
    ]


def test_a_filed_report_that_was_edited_no_longer_speaks(home: Home, genuine: bytes) -> None:
    home.receive(genuine)
    document = json.loads(genuine)
    document["verdict"]["result"] = "failed"
    (home.reports / "report.json").write_text(json.dumps(document))
    done = home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes")
    assert done.returncode == 3
    assert "was edited or damaged" in done.stderr
    assert "its report is missing" in done.stdout
    home.receive(genuine)
    assert home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes").returncode == 0


def test_a_huge_file_a_link_and_a_folder_do_no_harm(home: Home, tmp_path: Path) -> None:
    with (home.reports / "huge.json").open("wb") as file:
        file.truncate(2**33)
    (tmp_path / "secret.txt").write_text("secret")
    (home.reports / "link.json").symlink_to(tmp_path / "secret.txt")
    (home.reports / "folder.json").mkdir()
    done = home.bench.run("status", "spec.yaml")
    assert done.returncode == 1
    assert "it is larger than" in done.stderr
    assert "it is a folder" in done.stderr
    assert "secret" not in done.stderr.replace("secret.txt", "")
    assert (tmp_path / "secret.txt").read_text() == "secret"
    assert home.bench.run("status", "spec.yaml").stderr == ""
    assert home.bench.run("destroy", "spec.yaml", "--target", "colab", "--yes").returncode == 0
    assert not home.reports.exists()


def test_a_name_of_any_bytes_is_told_harmlessly(home: Home) -> None:
    Path(os.fsdecode(os.fsencode(home.reports) + b"/\xff\x1b[31m.json")).write_bytes(b"{")
    done = home.bench.run("status", "spec.yaml")
    assert done.returncode == 1
    assert "is damaged" in done.stderr
    assert "\x1b" not in done.stderr
    assert home.bench.run("status", "spec.yaml").stderr == ""


def test_while_another_provision_is_at_work_status_still_answers(
    home: Home, genuine: bytes
) -> None:
    from provision.state_store import LocalStore

    (home.reports / "a.json").write_bytes(genuine)
    with LocalStore(home.bench.own, home.world).exclusive(0, home.said.append):
        done = home.bench.run("status", "spec.yaml")
    assert "were not processed" in done.stderr
    assert "not verified" in done.stdout
    assert (home.reports / "a.json").exists()
