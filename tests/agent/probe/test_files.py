"""The files of installed packages are compared with their RECORDs: in real environments, with real
edits.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from provision.agent.core.record_audit import (
    InstallNote,
    RecordFile,
    compare_files,
    find_unlisted_files,
    make_install_note,
    read_record,
    stat_unchanged_files,
)
from provision.agent.probe.model import ReadingClass
from provision.agent.probe.readings import class_of_reading
from tests.agent.probe.bench import Environment, checks, hashed, without_rights

CODE = "VALUE = 1\n"


@pytest.fixture
def environment(environment: Environment) -> Environment:
    return environment.add("alpha", CODE).add("beta", CODE)


def site_of(environment: Environment) -> Path:
    return next(environment.root.glob("lib/python*/site-packages"))


def verdict(environment: Environment, **changes: Any) -> tuple[int, str, str]:
    """The exit code, and status and message of P07; the tier is the cheapest."""
    code, report, _ = environment.verify(**{"tier": "inventory", **changes})
    found = checks(report)["P07"]
    return code, found["status"], found["message"]


def garble(site: Path) -> None:
    (site / "alpha-1.0.dist-info/RECORD").write_bytes(b"\x00\xff not a table")


def cut(site: Path) -> None:
    record = site / "alpha-1.0.dist-info/RECORD"
    record.write_text(record.read_text()[:20])


EDITS: list[tuple[Callable[[Path], Any], str]] = [
    (
        lambda site: (site / "alpha/__init__.py").write_text(CODE + "print('pwned')\n"),
        "alpha: alpha/__init__.py has 25 bytes, expected 10",
    ),
    (
        lambda site: (site / "alpha/__init__.py").write_text(""),
        "alpha: alpha/__init__.py has 0 bytes, expected 10",
    ),
    (lambda site: (site / "alpha/__init__.py").unlink(), "alpha: alpha/__init__.py is missing"),
    (
        lambda site: ((site / "alpha/__init__.py").unlink(), (site / "alpha/__init__.py").mkdir()),
        "alpha: alpha/__init__.py is not a regular file",
    ),
    (garble, "alpha: its RECORD is malformed"),
    (cut, "alpha: its RECORD is malformed"),
    (
        lambda site: (site / "evil.pth").write_text("import os\n"),
        "evil.pth, which Python runs at each start, does not belong to any package",
    ),
    (
        lambda site: (site / ".hidden.pth").write_text("import os\n"),
        ".hidden.pth, which Python runs at each start, does not belong to any package",
    ),
    (
        lambda site: (site / "sitecustomize.py").write_text("import os\n"),
        "sitecustomize.py, which Python runs at each start, does not belong to any package",
    ),
    (
        lambda site: (site / "_virtualenv.pth").write_text("import os\n"),
        "_virtualenv.pth, which Python runs at each start, does not belong to any package",
    ),
]


@pytest.mark.long(after=2)
@pytest.mark.parametrize(("edit", "says"), EDITS)
def test_an_environment_that_was_edited_fails(
    environment: Environment, edit: Callable[[Path], Any], says: str
) -> None:
    assert verdict(environment) == (
        0,
        "pass",
        "4 files of the locked packages match the size in their RECORDs",
    )
    edit(site_of(environment))
    code, status, message = verdict(environment)
    assert (code, status) == (1, "fail")
    assert says in message


@pytest.mark.long
def test_without_a_note_an_edit_that_keeps_the_size_is_seen_by_the_deep_tier_alone(
    environment: Environment,
) -> None:
    assert verdict(environment, tier="deep") == (
        0,
        "pass",
        "4 files of the locked packages match the size and sha256 in their RECORDs",
    )
    (site_of(environment) / "alpha/__init__.py").write_text(CODE.replace("1", "2"))
    assert verdict(environment, tier="quick")[:2] == (0, "pass")
    code, status, message = verdict(environment, tier="deep")
    assert (code, status) == (1, "fail")
    assert "1 file is not as installed: alpha: alpha/__init__.py was changed" in message


def note(environment: Environment, **changes: Any) -> None:
    """Note the packages as the installer does after an installation."""
    site = site_of(environment)
    packages = {
        name: make_install_note(read_record(str(site / f"{name}-1.0.dist-info"))).to_json()
        for name in ("alpha", "beta")
    }
    packages["alpha"] |= changes
    (environment.root / "installed.json").write_text(json.dumps({"packages": packages}))


AS_INSTALLED = (
    "4 files of the locked packages are unchanged since the installation (4 by size and "
    "modification time)"
)


def test_with_a_note_of_the_installation_every_edit_is_seen_that_leaves_a_trace(
    environment: Environment,
) -> None:
    site = site_of(environment)
    note(environment)
    assert verdict(environment) == (0, "pass", AS_INSTALLED)
    assert verdict(environment, tier="deep") == (
        0,
        "pass",
        "4 files of the locked packages match the size and sha256 in their RECORDs",
    )
    before = (site / "alpha/__init__.py").stat()
    os.utime(site / "alpha/__init__.py")
    assert verdict(environment) == (
        0,
        "pass",
        (
            "4 files of the locked packages are unchanged since the installation (2 by size and "
            "modification time, 2 by the sha256 in their RECORDs)"
        ),
    )
    (site / "alpha/__init__.py").write_text(CODE.replace("1", "2"))
    assert verdict(environment)[:2] == (1, "fail")
    assert (
        "1 file is not as installed: alpha: alpha/__init__.py was changed"
        in verdict(environment)[2]
    )
    os.utime(site / "alpha/__init__.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert verdict(environment)[:2] == (0, "pass"), "nothing tells it without reading the file"
    assert verdict(environment, tier="deep")[:2] == (1, "fail")


def test_a_record_that_is_not_the_installed_one_is_damage(environment: Environment) -> None:
    record = site_of(environment) / "alpha-1.0.dist-info/RECORD"
    note(environment)
    record.write_text(record.read_text() + "alpha/more.pyc,,\n")
    assert "alpha: its RECORD was changed" in verdict(environment)[2]
    record.unlink()
    assert verdict(environment) == (
        1,
        "fail",
        "1 file is not as installed: alpha: its RECORD cannot be read: No such file or directory",
    )


def test_a_package_that_never_fitted_is_damaged_once_it_is_changed(
    environment: Environment,
) -> None:
    site = site_of(environment)
    (site / "alpha/__init__.py").write_text(CODE + "# longer\n")
    note(environment, record_fits=False)
    assert verdict(environment)[:2] == (0, "warn")
    (site / "alpha/__init__.py").write_text(CODE + "# longer still\n")
    assert verdict(environment)[:2] == (1, "fail")


@pytest.mark.parametrize(
    "found",
    [
        None,
        {},
        {"packages": []},
        {"packages": {"alpha": 1}},
        {"packages": {"alpha": {"record": None, "snapshot": 0}}},
    ],
)
def test_a_note_that_says_nothing_of_files_is_no_note(found: Any) -> None:
    assert InstallNote.from_install_result(found, "alpha") == InstallNote()


@pytest.mark.long(after=1)
@pytest.mark.parametrize("text", [None, "", "alpha/__init__.py,,\n"])
def test_without_a_list_of_files_it_is_unverified_and_never_green(
    environment: Environment, text: str | None
) -> None:
    record = site_of(environment) / "alpha-1.0.dist-info/RECORD"
    record.unlink()
    if text is not None:
        record.write_text(text)
    code, status, message = verdict(environment)
    assert (code, status) == (3, "unknown")
    assert "alpha: its RECORD " in message


def test_other_strays_are_a_warning_and_bytecode_is_nothing(environment: Environment) -> None:
    site = site_of(environment)
    subprocess.run([environment.python, "-m", "compileall", "-q", str(site)], check=True)
    (site / "__pycache__").mkdir(exist_ok=True)
    (site / "__pycache__/alpha.cpython-311.pyc").write_bytes(b"")
    (site / "_virtualenv.pth").write_text("import _virtualenv")
    (site / "_virtualenv.py").write_text("")
    assert verdict(environment)[:2] == (0, "pass")
    (site / "stray.py").write_text("")
    (site / os.fsdecode(b"not-\xff-text")).write_text("")
    code, status, message = verdict(environment)
    assert (code, status) == (0, "warn")
    assert "files that do not belong to any package: not-\\udcff-text; stray.py" in message


def test_a_pth_file_that_a_package_lists_is_its_own(environment: Environment) -> None:
    site = site_of(environment)
    (site / "alpha.pth").write_text("import sys\n")
    with (site / "alpha-1.0.dist-info/RECORD").open("a") as record:
        record.write(
            f"alpha.pth,{hashed(site / 'alpha.pth')},{(site / 'alpha.pth').stat().st_size}\n"
        )
    assert verdict(environment)[:2] == (0, "pass")
    (site / "alpha.pth").write_text("import sys, os\n")
    assert "alpha: alpha.pth has 15 bytes, expected 11" in verdict(environment)[2]


def test_a_wheel_whose_record_never_fitted_is_a_warning(environment: Environment) -> None:
    (site_of(environment) / "alpha/__init__.py").write_text(CODE + "# longer\n")
    note = {"packages": {"alpha": {"record_fits": False}, "beta": {"version": "1.0"}, "gamma": []}}
    (environment.root / "installed.json").write_text(json.dumps(note))
    code, status, message = verdict(environment)
    assert (code, status) == (0, "warn")
    assert (
        "RECORD when they were installed: alpha: alpha/__init__.py has 19 bytes, expected 10"
        in message
    )


@pytest.mark.long
def test_a_file_that_conda_made_anew_is_none_that_was_changed(environment: Environment) -> None:
    site, note = site_of(environment), environment.root / "installed.json"
    (site / "alpha/__init__.py").write_text(CODE + "# longer\n")
    prefix = subprocess.run(
        [environment.python, "-c", "import sys; print(sys.prefix)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    remade = str((site / "alpha/__init__.py").relative_to(prefix))
    note.write_text(
        json.dumps(
            {
                "packages": {
                    "alpha": {"version": "1.0", "conda": "alpha-1.0-h0", "remade": [remade, 7]}
                }
            }
        )
    )
    assert verdict(environment, conda=["alpha-1.0-h0"], tier="deep")[:2] == (0, "pass")
    assert verdict(environment, conda=["alpha-2.0-h0"])[:2] == (1, "fail"), (
        "of a file that is not locked nothing is known"
    )
    others = [{"name": "beta", "version": "1.0"}]
    assert verdict(environment, conda=["alpha-1.0-h0"], packages=others, direct=["beta"])[:2] == (
        0,
        "pass",
    )
    note.write_text(
        json.dumps({"packages": {"alpha": {"version": "1.0", "conda": "alpha-1.0-h0"}}})
    )
    assert verdict(environment, conda=["alpha-1.0-h0"], packages=others, direct=["beta"])[:2] == (
        1,
        "fail",
    ), "what is not locked by name is looked at too"


@pytest.mark.long
def test_a_file_that_two_packages_bring_is_the_one_of_either(environment: Environment) -> None:
    site = site_of(environment)
    (site / "README.md").write_text("of beta\n")
    for name, size in (("alpha", 900), ("beta", 8)):
        with (site / f"{name}-1.0.dist-info/RECORD").open("a") as record:
            record.write(
                f"README.md,{hashed(site / 'README.md') if name == 'beta' else 'sha256=x'},{size}\n"
            )
    assert verdict(environment, tier="deep")[:2] == (0, "pass")
    (site / "README.md").write_text("of nobody\n")
    code, status, message = verdict(environment)
    assert (code, status) == (1, "fail")
    assert (
        "alpha: README.md has 10 bytes, expected 900; beta: README.md has 10 bytes, expected 8"
        in message
    )


def test_a_package_that_is_not_locked_is_not_compared(environment: Environment) -> None:
    (site_of(environment) / "beta/__init__.py").unlink()
    assert verdict(environment, packages=[{"name": "alpha", "version": "1.0"}], direct=["alpha"])[
        :2
    ] == (0, "pass")


def test_the_identity_of_an_environment_does_not_move_with_its_files(
    environment: Environment,
) -> None:
    _, before, _ = environment.verify()
    (site_of(environment) / "alpha/__init__.py").write_text("")
    (site_of(environment) / "evil.pth").write_text("")
    _, after, _ = environment.verify()
    assert before["digests"]["identity"] == after["digests"]["identity"]
    for name in ("files", "altered", "without_record", "never_fitted", "stray_pth", "stray"):
        assert class_of_reading(f"packages.{name}") is ReadingClass.CONTEXT


def test_of_an_interpreter_that_is_not_ours_only_pth_files_are_named(
    environment: Environment, document: Callable[..., dict[str, Any]]
) -> None:
    """The base interpreter, looked at as a device's own: what a system brings is no failure."""
    code = (
        "import json, sys\nfrom pathlib import Path\nsys.path.insert(0, sys.argv[1])\n"
        "from provision_probe.probe.expectations import parse_expectations\nfrom "
        "provision_probe.probe.context import ObserverContext\nfrom "
        "provision_probe.probe.observing import observers_of\n"
        "seen = "
        "observers_of('packages')['P07'](ObserverContext("
        "parse_expectations(json.loads(sys.argv[2])), "
        "Path('.')))\n"
        "print(json.dumps([seen['_packages.own'], seen['packages.stray']]))\n"
    )
    argv = [
        f"{sys.base_prefix}/bin/python3",
        "-I",
        "-c",
        code,
        str(environment.probe),
        json.dumps(document()),
    ]
    assert json.loads(subprocess.run(argv, capture_output=True, check=True).stdout) == [False, []]


@pytest.mark.parametrize(
    ("row", "hashing", "flaw"),
    [
        ("a.py,sha256=x,9", False, "a.py has 1 bytes, expected 9"),
        ("a.py,sha256=x,", False, None),
        ("a.py,sha256=x,", True, "a.py was changed"),
        ("a.py,nonsense=x,1", True, "a.py cannot be checked: unsupported hash type nonsense"),
        ("a.py,shake_128=x,1", True, "a.py cannot be checked: "),
        ("a\0.py,sha256=x,1", False, "a\0.py is missing"),
        ("/dev/zero,sha256=x,0", True, "/dev/zero is not a regular file"),
        (f"{'a' * 5000},sha256=x,1", False, "a" * 200),
    ],
)
def test_every_kind_of_row(tmp_path: Path, row: str, hashing: bool, flaw: str | None) -> None:
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "a-1.dist-info").mkdir()
    record = RecordFile(str(tmp_path / "a-1.dist-info"), (tuple(row.split(",")),))  # type: ignore[arg-type]
    found = compare_files(record, hashed=hashing)
    assert found.files == 1
    assert [flaw is not None and one.startswith(flaw) for one in found.flaws.values()] == (
        [True] if flaw else []
    )


def test_unchanged_files_are_those_that_the_note_describes(environment: Environment) -> None:
    record = read_record(str(site_of(environment) / "alpha-1.0.dist-info"))
    note = make_install_note(record)
    assert len(stat_unchanged_files(record, note)) == len(record.hashed_rows)
    assert stat_unchanged_files(record, replace(note, snapshot="another")) == []
    assert stat_unchanged_files(record, replace(note, record_fits=False)) == []
    assert stat_unchanged_files(record, InstallNote()) == []
    (site_of(environment) / "alpha/__init__.py").unlink()
    assert stat_unchanged_files(record, make_install_note(record)) == []


def test_folders_without_files_are_no_strays(tmp_path: Path) -> None:
    (tmp_path / "PyYAML.libs/deep").mkdir(parents=True)
    assert find_unlisted_files(str(tmp_path), []) == ([], [])
    (tmp_path / "link").symlink_to(tmp_path / "PyYAML.libs")
    assert find_unlisted_files(str(tmp_path), []) == ([], ["link"])
    (tmp_path / "PyYAML.libs/deep/lib.so").write_text("")
    assert find_unlisted_files(str(tmp_path), []) == ([], ["PyYAML.libs", "link"])


def test_a_folder_that_cannot_be_listed_has_no_strays(tmp_path: Path) -> None:
    assert find_unlisted_files(str(tmp_path / "gone"), []) == ([], [])
    assert (
        read_record(str(tmp_path / "a.egg-info")).flaw
        == "its RECORD cannot be read: No such file or directory"
    )


def test_a_package_without_metadata_is_told_from_one_that_is_not_there(
    environment: Environment,
) -> None:
    (site_of(environment) / "alpha-1.0.dist-info/METADATA").unlink()
    code, report, _ = environment.verify(tier="inventory")
    found = checks(report)["P02"]
    assert (code, found["status"]) == (1, "fail")
    assert "alpha has no readable METADATA (in alpha-1.0.dist-info), locked 1.0" in found["message"]
    assert "interrupted" in found["cause"]


def test_a_package_that_is_not_for_this_python_fails(environment: Environment) -> None:
    metadata = site_of(environment) / "alpha-1.0.dist-info/METADATA"
    metadata.write_text(
        metadata.read_text().replace("Name: alpha\n", "Name: alpha\nRequires-Python: >=3.8,<3.9\n")
    )
    _, report, _ = environment.verify(tier="inventory")
    found = checks(report)["P04"]
    assert found["status"] == "fail"
    assert found["message"].startswith(
        f"alpha 1.0 needs Python >=3.8,<3.9, but this is {sys.version_info.major}."
    )


def test_a_package_of_another_version_than_its_metadata_says_is_a_warning(
    environment: Environment,
) -> None:
    environment.add("gamma", "__version__ = '0.9'\n").add(
        "delta", "__version__ = '1.0+local'\n"
    ).add("epsilon", "__version__ = 'unknown'\n")
    code, report, _ = environment.verify()
    found = checks(report)
    assert code == 0
    assert found["P06:gamma"]["status"] == "warn"
    assert (
        "gamma reports version 0.9 when imported, but its metadata lists 1.0"
        in found["P06:gamma"]["message"]
    )
    assert (found["P06:delta"]["status"], found["P06:epsilon"]["status"]) == ("pass", "pass")


def test_a_module_that_is_imported_from_elsewhere_is_told_with_its_file(
    environment: Environment, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "alpha.py").write_text("VALUE = 2\n")
    (site_of(environment) / "first.pth").write_text(
        f"import sys; sys.path.insert(0, {str(tmp_path / 'mine')!r})\n"
    )
    code, report, _ = environment.verify()
    found = checks(report)["P06:alpha"]
    assert (code, found["status"]) == (1, "fail")
    assert f"alpha is imported from {tmp_path / 'mine' / 'alpha.py'}" in found["message"]


def test_a_file_that_may_not_be_read_is_said_to_be_there(environment: Environment) -> None:
    environment.before = without_rights()
    file = site_of(environment) / "alpha/__init__.py"
    file.chmod(0)
    assert "alpha: alpha/__init__.py cannot be read: Permission denied" in verdict(environment)[2]
    file.parent.chmod(0)
    message = verdict(environment)[2]
    file.parent.chmod(0o755)
    assert "alpha: alpha/__init__.py cannot be read: Permission denied" in message


def test_a_python_that_was_replaced_beneath_the_environment_is_a_warning(
    environment: Environment,
) -> None:
    config = environment.root / "pyvenv.cfg"
    config.write_text(re.sub(r"(?m)^version = .*$", "version = 3.9.1", config.read_text()))
    code, report, _ = environment.verify(tier="inventory")
    found = checks(report)["P01"]
    assert (code, found["status"]) == (0, "warn")
    assert found["message"].endswith("in an environment that was created with Python 3.9.1")


def test_an_environment_without_its_pyvenv_cfg_is_told_from_another_environment(
    environment: Environment,
) -> None:
    (environment.root / "pyvenv.cfg").unlink()
    code, report, _ = environment.verify(tier="inventory")
    found = checks(report)["P01"]
    assert (code, found["status"]) == (1, "fail")
    assert "pyvenv.cfg is missing or damaged" in found["cause"]
