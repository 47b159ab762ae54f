"""Distributions are found as Python finds them, and give the modules one would import."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import pytest

from provision.agent.probe.inventory import (
    Distribution,
    active_distributions,
    find_distributions,
    modules_to_import,
    top_level_modules,
)


def put(
    site: Path,
    name: str,
    version: str,
    record: str = "",
    top_level: str = "",
    kind: str = "dist-info",
    extra: str = "",
) -> Path:
    info = site / f"{name}-{version}.{kind}"
    info.mkdir(parents=True)
    head = "METADATA" if kind == "dist-info" else "PKG-INFO"
    (info / head).write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{extra}\nRequires-Dist: "
        "body-not-head\n",
        encoding="utf-8",
    )
    if record:
        (info / "RECORD").write_text(record, encoding="utf-8")
    if top_level:
        (info / "top_level.txt").write_text(top_level, encoding="utf-8")
    return info


def one(site: Path) -> Distribution:
    return find_distributions([str(site)])[0]


def test_it_agrees_with_importlib_metadata_about_this_environment() -> None:
    ours = {
        name: dist.version
        for name, dist in active_distributions(
            find_distributions(entry for entry in sys.path if entry)
        ).items()
    }
    theirs = {}
    for dist in importlib.metadata.distributions():
        if dist.metadata["Name"]:
            theirs.setdefault(
                dist.metadata["Name"].lower().replace("_", "-").replace(".", "-"), dist.version
            )
    assert ours == theirs
    assert len(ours) > 5


def test_only_the_head_of_the_metadata_is_read(tmp_path: Path) -> None:
    put(tmp_path, "A_b.C", "1.0", extra="Requires-Dist: x>=1\nRequires-Dist: y; extra == 'z'\n")
    assert (one(tmp_path).name, one(tmp_path).requires) == ("a-b-c", ("x>=1", "y; extra == 'z'"))


def test_the_first_on_the_path_wins_and_eggs_count(tmp_path: Path) -> None:
    put(tmp_path / "one", "pkg", "1.0", kind="egg-info")
    put(tmp_path / "two", "pkg", "2.0")
    found = find_distributions(
        [str(tmp_path / "one"), str(tmp_path / "two"), str(tmp_path / "absent")]
    )
    assert [dist.version for dist in found] == ["1.0", "2.0"]
    assert active_distributions(found)["pkg"].version == "1.0"


def test_broken_metadata_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "broken-1.dist-info").mkdir()
    (tmp_path / "garbled-1.dist-info").mkdir()
    (tmp_path / "garbled-1.dist-info" / "METADATA").write_bytes(b"\xff\xfe\x00")
    assert find_distributions([str(tmp_path)]) == ()


def test_editable_installs_are_told(tmp_path: Path) -> None:
    info = put(tmp_path, "pkg", "1.0")
    (info / "direct_url.json").write_text(
        '{"url": "file:///x", "dir_info": {"editable": true}}', encoding="utf-8"
    )
    assert one(tmp_path).editable


@pytest.mark.parametrize(
    ("name", "record", "top_level", "modules"),
    [
        (
            "torch",
            "torch/__init__.py,,\nfunctorch/__init__.py,,\ntorchgen/__init__.py,,\n",
            "functorch\ntorch\ntorchgen\n",
            ("torch",),
        ),
        ("pyyaml", "yaml/__init__.py,,\n_yaml/__init__.py,,\n", "", ("yaml",)),
        ("scikit-learn", "sklearn/__init__.py,,\nsklearn/tests/__init__.py,,\n", "", ("sklearn",)),
        ("six", "six.py,,\nsix-1.dist-info/METADATA,,\n", "", ("six",)),
        ("native", "native.cpython-311-x86_64-linux-gnu.so,,\n", "", ("native",)),
        (
            "google-cloud-storage",
            "google/cloud/storage/__init__.py,,\ngoogle/cloud/storage/a.py,,\n",
            "",
            ("google.cloud.storage",),
        ),
        (
            "nvidia-cudnn-cu12",
            "nvidia_cudnn_cu12-1.dist-info/METADATA,,\n../../lib/x.so,,\n",
            "",
            (),
        ),
        ("thing", "thing/__init__.py,,\ntests/__init__.py,,\n", "", ("thing",)),
        (
            "two-names",
            "first/__init__.py,,\nsecond.py,,\ndocs/conf.py,,\n",
            "",
            ("first", "second"),
        ),
    ],
)
def test_modules_of_distributions(
    tmp_path: Path, name: str, record: str, top_level: str, modules: tuple[str, ...]
) -> None:
    put(tmp_path, name, "1", record, top_level)
    assert modules_to_import(one(tmp_path)) == modules


@pytest.mark.parametrize(
    ("files", "line", "modules"),
    [
        (("src/mm/__init__.py", "src/mm/part/__init__.py"), "{project}/src", ("mm",)),
        (("mm/__init__.py", "train.py", "setup.py", "tests/__init__.py"), "{project}", ("mm",)),
        (("mm.py", "train.py"), "{project}", ("mm",)),
        (("src/other/__init__.py", "src/train.py"), "{project}/src", ("other",)),
        (("src/group/mm/__init__.py",), "{project}/src", ("group.mm",)),
        (("train.py",), "{project}", ()),
        (("src/mm/__init__.py",), "import _mm_finder", ()),
        (("src/mm/__init__.py",), "{project}/gone", ()),
    ],
)
def test_modules_of_an_editable_package(
    tmp_path: Path, files: tuple[str, ...], line: str, modules: tuple[str, ...]
) -> None:
    """A build backend writes a .pth file, and only setuptools also writes top_level.txt."""
    project, site = tmp_path / "project", tmp_path / "site"
    for file in files:
        (project / file).parent.mkdir(parents=True, exist_ok=True)
        (project / file).touch()
    info = put(site, "mm", "0.1", "_editable_impl_mm.pth,,\nmm-0.1.dist-info/METADATA,,\n")
    (info / "direct_url.json").write_text('{"url": "file:///x", "dir_info": {"editable": true}}')
    (site / "_editable_impl_mm.pth").write_text(line.format(project=project))
    assert modules_to_import(one(site)) == modules


def test_an_editable_package_with_a_finder_is_imported_by_its_name(tmp_path: Path) -> None:
    """Meson and scikit-build have a loader in place of a folder: Python finds the module."""
    info = put(tmp_path, "json", "0.1", "json.pth,,\n")
    (info / "direct_url.json").write_text('{"dir_info": {"editable": true}}')
    (tmp_path / "json.pth").write_text("import _json_loader\n")
    assert modules_to_import(one(tmp_path)) == ("json",)


def test_module_names_of_a_path_entry(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "plain-folder").mkdir()
    (tmp_path / "data").mkdir()
    for name in ("mod.py", "ext.cpython-311-x86_64-linux-gnu.so", "notes.txt"):
        (tmp_path / name).write_text("", encoding="utf-8")
    assert top_level_modules(str(tmp_path)) == {"pkg", "mod", "ext"}
    assert top_level_modules(str(tmp_path / "absent")) == frozenset()
