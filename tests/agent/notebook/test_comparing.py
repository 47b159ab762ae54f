"""What the lock would change, which packages are loaded, and the way back."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from provision.agent.core.installed_packages import find_installed_packages
from provision.agent.core.versions import is_same_version
from provision.agent.notebook.loaded_modules import (
    KernelProcess,
    LoadedModules,
    find_packages_in_use,
    find_stale_packages,
    identify_kernel_process,
    inspect_loaded_modules,
    process_start_ns,
)
from provision.agent.notebook.package_backup import (
    back_up_packages,
    read_versions_before,
    restore_packages,
)
from provision.agent.notebook.package_diff import (
    compare_packages,
    find_protected_changes,
    find_unpredicted_changes,
)
from provision.agent.notebook.session import find_package_folders
from tests.agent.probe.bench import write_package

NOTHING = LoadedModules(frozenset(), {}, frozenset())


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "image/lib/site-packages"
    for name in ("alpha", "beta", "gamma", "theirs"):
        write_package(folder, name, f"__version__ = '1.0'\nNAME = {name!r}\n", "1.0")
    return folder


def test_packages_are_kept_changed_added_and_the_others_stay(site: Path) -> None:
    (site / "beta/__init__.py").write_text("longer than it was\n" * 5)
    found = compare_packages(
        {"alpha": "1.0.0", "beta": "1.0", "gamma": "2.0", "delta": "1.0"},
        find_installed_packages([str(site)]),
    )
    assert (found.kept, found.added, found.other_count) == (("alpha",), ("delta",), 1)
    assert found.changed == {"gamma": ("1.0", "2.0")}
    assert list(found.damaged) == ["beta"]
    assert "bytes" in found.damaged["beta"]
    assert found.to_install == ("beta", "delta", "gamma")
    assert found.summary == "1 kept, 1 changed, 1 added, 1 damaged; 1 not in the lock"


def test_a_package_whose_own_record_is_wrong_is_not_damaged(site: Path) -> None:
    (site / "beta/__init__.py").write_text("longer than it was\n" * 5)
    there = find_installed_packages([str(site)])
    assert compare_packages({"beta": "1.0"}, there, {"beta"}).kept == ("beta",)
    (site / "beta-1.0.dist-info/RECORD").unlink()
    assert compare_packages({"beta": "1.0"}, find_installed_packages([str(site)])).damaged == {
        "beta": "its RECORD cannot be read: No such file or directory"
    }


def test_only_changes_of_what_the_kernel_lives_on_are_refused(site: Path) -> None:
    found = compare_packages(
        {"alpha": "1.0", "gamma": "2.0", "new": "1"}, find_installed_packages([str(site)])
    )
    assert find_protected_changes(found, {"alpha", "new"}) == []
    assert find_protected_changes(found, {"gamma"}) == ["gamma 1.0 -> 2.0"]


def test_what_the_lock_did_not_foresee_is_told(site: Path) -> None:
    found = compare_packages({"alpha": "1.0", "gamma": "2.0"}, find_installed_packages([str(site)]))
    assert find_unpredicted_changes(found, {"gamma": "1.0"}) == []
    assert find_unpredicted_changes(found, {"alpha": "0.9"}) == [
        "gamma 1.0 -> 2.0",
        "alpha already has the locked version",
    ]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2.11.0+cu128", "2.11.0+cu128", True),
        ("2.11.0+cu128", "2.11.0", False),
        ("1.0", "1.0.0", True),
        ("2024.07.04", "2024.7.4", True),
        ("1.0rc1", "1.0-rc.1", True),
        ("1.0", "1.0rc1", False),
        ("1.0.post1", "1.0", False),
        ("1.10", "1.1", False),
    ],
)
def test_versions_are_compared_as_versions(one: str, other: str, same: bool) -> None:
    assert is_same_version(one, other) is same


def test_the_working_folder_pythonpath_and_the_users_packages_do_not_count(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("own", "path", "user")]
    for folder in folders:
        folder.mkdir()
    assert find_package_folders(
        ["", *map(str, folders), str(tmp_path / "absent")], str(folders[1]), str(folders[2])
    ) == (str(folders[0]),)


def test_a_package_is_in_use_when_a_file_of_it_is_loaded(site: Path) -> None:
    dists = find_installed_packages([str(site)]).values()
    loaded = LoadedModules(
        frozenset([str(site / "alpha/__init__.py"), "/elsewhere/beta/__init__.py"]), {}, frozenset()
    )
    assert find_packages_in_use(dists, loaded) == ("alpha",)
    assert find_packages_in_use(dists, NOTHING) == ()


def test_stale_is_what_was_changed_while_it_was_loaded_and_nothing_else(site: Path) -> None:
    dists = list(find_installed_packages([str(site)]).values())
    file = str(site / "alpha/__init__.py")
    assert find_stale_packages(dists, NOTHING, (), 0) == ()
    assert find_stale_packages(dists, NOTHING, ("beta", "no-longer-locked"), 0) == ("beta",)
    assert find_stale_packages(dists, LoadedModules(frozenset(), {}, frozenset([file])), (), 0) == (
        "alpha",
    )
    assert (
        find_stale_packages(
            dists, LoadedModules(frozenset([file]), {file: "1.0"}, frozenset()), (), 0
        )
        == ()
    )
    assert find_stale_packages(
        dists, LoadedModules(frozenset([file]), {file: "0.9"}, frozenset()), (), 0
    ) == ("alpha",)
    # Installed before this process started: it states another version for good.
    assert (
        find_stale_packages(
            dists,
            LoadedModules(frozenset([file]), {file: "0.9"}, frozenset()),
            (),
            time.time_ns() + 10**12,
        )
        == ()
    )
    assert (
        find_stale_packages(
            dists, LoadedModules(frozenset([file]), {file: "unknown"}, frozenset()), (), 0
        )
        == ()
    )


def test_a_process_knows_what_it_has_loaded_and_when_it_started(site: Path) -> None:
    code = (
        "import json, sys, time; sys.path[:0] = sys.argv[1:]; import alpha\n"
        "from provision.agent.notebook.loaded_modules import *; from "
        "provision.agent.core.installed_packages import find_installed_packages\n"
        "dists = list(find_installed_packages([sys.argv[1]]).values())\n"
        "since = process_start_ns(identify_kernel_process())\n"
        "open(sys.argv[1] + '/beta-1.0.dist-info/RECORD', 'a').close()\n"
        "used = find_packages_in_use(dists, inspect_loaded_modules(sys.modules))\n"
        "ticks = identify_kernel_process().started\n"
        "print(json.dumps([used, abs(time.time_ns() - since) < 6e10, ticks > 0]))"
    )
    src = str(Path(__file__).parents[3] / "src")
    done = subprocess.run(
        [sys.executable, "-c", code, str(site), src], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [["alpha"], True, True]


def test_a_library_that_was_replaced_under_a_process_is_gone_from_the_disk(tmp_path: Path) -> None:
    code = (
        "import mmap, os, sys; file = open(sys.argv[1], 'rb'); held = "
        "mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\n"
        "os.unlink(sys.argv[1]); sys.path.insert(0, sys.argv[2]); from "
        "provision.agent.notebook.loaded_modules import inspect_loaded_modules\n"
        "print(sys.argv[1] in inspect_loaded_modules({}).deleted_files)"
    )
    library = tmp_path / "a library.so"
    library.write_bytes(bytes(8192))
    done = subprocess.run(
        [sys.executable, "-c", code, str(library), str(Path(__file__).parents[3] / "src")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True\n"


def test_a_module_that_waits_for_its_first_use_is_not_woken(site: Path) -> None:
    (site / "sleeper.py").write_text("raise SystemExit('woken')")
    spec = importlib.util.spec_from_file_location("sleeper", site / "sleeper.py")
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    loaded = inspect_loaded_modules({"sleeper": module, "odd": None, "number": 1})
    assert str(site / "sleeper.py") in loaded.files
    with pytest.raises(SystemExit, match="woken"):
        _ = module.anything


def test_this_kernel_is_itself_and_its_modules_are_known() -> None:
    assert identify_kernel_process() == identify_kernel_process()
    assert identify_kernel_process().pid == os.getpid()
    assert process_start_ns(KernelProcess(1, 0)) <= process_start_ns(identify_kernel_process())
    assert os.path.realpath(pytest.__file__) in inspect_loaded_modules(sys.modules).files


def test_what_is_changed_is_kept_first_and_comes_back(site: Path, tmp_path: Path) -> None:
    folder, root = tmp_path / "cell", str(tmp_path / "image")
    folder.mkdir()
    before = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    assert back_up_packages(folder, find_installed_packages([str(site)]), ("alpha", "delta")) == []
    assert read_versions_before(folder) == dict.fromkeys(
        ("alpha", "beta", "gamma", "theirs"), "1.0"
    )
    for path in sorted((site / "alpha").iterdir()) + sorted(
        (site / "alpha-1.0.dist-info").iterdir()
    ):
        path.unlink()
    (site / "alpha-1.0.dist-info").rmdir()
    (site / "alpha").rmdir()
    write_package(site, "alpha", "__version__ = '2.0'\n", "2.0")
    write_package(site, "delta", "", "1.0")
    (site / "delta/__pycache__").mkdir()
    # A later run of the cell keeps what was there before the first one.
    assert back_up_packages(folder, find_installed_packages([str(site)]), ("alpha",)) == []
    done, left = restore_packages(
        folder, find_installed_packages([str(site)]), ("alpha", "beta", "delta"), root
    )
    assert (done, left) == (["alpha", "delta"], [])
    assert {path: path.read_bytes() for path in site.rglob("*") if path.is_file()} == before
    assert not (site / "delta").exists()


def test_nothing_outside_the_interpreters_folder_is_removed(site: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cell"
    folder.mkdir()
    back_up_packages(folder, find_installed_packages([str(site)]), ())
    write_package(site, "delta", "", "1.0")
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    with (site / "delta-1.0.dist-info/RECORD").open("a") as record:
        record.write(f"../../../mine.txt,sha256=x,4\n{mine},sha256=x,4\n")
    assert restore_packages(
        folder, find_installed_packages([str(site)]), ("delta",), str(tmp_path / "image")
    ) == (["delta"], [])
    assert mine.read_text() == "mine"


def test_a_change_that_was_not_kept_is_named(site: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cell"
    folder.mkdir()
    back_up_packages(folder, find_installed_packages([str(site)]), ())
    (site / "alpha-1.0.dist-info").rename(site / "alpha-2.0.dist-info")
    assert restore_packages(
        folder, find_installed_packages([str(site)]), ("alpha",), str(tmp_path)
    ) == ([], ["alpha==1.0"])
