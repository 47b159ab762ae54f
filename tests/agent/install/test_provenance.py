"""What the installer says of each package is what happened to it, with the real uv: checked by
hash, left as it was, or put right.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.install.bench import UV, Device, sha256
from tests.rig import make_index, make_wheel, served

CHANGED = "__version__ = '9.9'\n"


def test_an_environment_of_ours_ends_up_with_exactly_the_packages(device: Device) -> None:
    device.bring("theirs==1.0", "gamma==2.0")
    done = device.install(device.document("alpha==1.0", "gamma==1.0", mode="own"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "1 hash-checked, 1 reinstalled\n"
    result = device.result()
    assert result["schema"] == "provision.installed/1"
    assert (result["mode"], result["audit"], result["notes"]) == ("own", "full", [])
    assert result["counts"] == {"hash-checked": 1, "preinstalled": 0, "reinstalled": 1}
    assert result["packages"]["alpha"]["version"] == "1.0"
    assert result["packages"]["alpha"]["files_checked"] >= 3
    assert sorted(path.name for path in device.packages.glob("*.dist-info")) == [
        "alpha-1.0.dist-info",
        "gamma-1.0.dist-info",
    ]


def test_an_interpreter_of_others_keeps_what_is_not_in_the_lock(device: Device) -> None:
    device.bring("theirs==1.0", "alpha==1.0", "beta==1.0", "gamma==2.0")
    (device.packages / "beta/__init__.py").write_text(CHANGED)
    before = device.there()
    done = device.install(device.document("alpha==1.0", "beta==1.0", "gamma==1.0", "delta==1.0"))
    assert done.returncode == 0, done.stderr
    assert device.provenance() == {
        "alpha": "preinstalled",
        "beta": "reinstalled",
        "gamma": "reinstalled",
        "delta": "hash-checked",
    }
    after = device.there()
    assert after["beta/__init__.py"] == b"__version__ = '1.0'\n"
    assert {
        path: content for path, content in after.items() if path.startswith(("theirs", "alpha"))
    } == {path: content for path, content in before.items() if path.startswith(("theirs", "alpha"))}
    second = device.install(
        device.document("alpha==1.0", "beta==1.0", "gamma==1.0", "delta==1.0"), "--uv", "/no/uv"
    )
    assert second.returncode == 0, "there is nothing to do for uv"
    assert set(device.provenance().values()) == {"preinstalled"}


def removed(packages: Path, name: str) -> None:
    (packages / name).unlink()


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    "damage",
    [
        lambda packages: (packages / "beta/__init__.py").write_text(CHANGED),
        lambda packages: (packages / "beta/__init__.py").write_text("longer\n" * 9),
        lambda packages: removed(packages, "beta/__init__.py"),
        lambda packages: removed(packages, "beta-1.0.dist-info/METADATA"),
        lambda packages: removed(packages, "beta-1.0.dist-info/RECORD"),
        lambda packages: (packages / "beta-1.0.dist-info/RECORD").write_text(""),
        lambda packages: (packages / "beta-1.0.dist-info/RECORD").write_bytes(
            b'"beta/__init__.py,sha256=\xff\n\0'
        ),
        lambda packages: (
            removed(packages, "beta/__init__.py"),
            (packages / "beta/__init__.py").mkdir(),
        ),
    ],
    ids=[
        "changed",
        "longer",
        "missing",
        "no metadata",
        "no RECORD",
        "empty RECORD",
        "garbled RECORD",
        "a folder",
    ],
)
def test_a_damaged_package_is_found_and_put_right(
    device: Device, damage: Callable[[Path], object]
) -> None:
    device.bring("alpha==1.0", "beta==1.0")
    damage(device.packages)
    done = device.install(device.document("alpha==1.0", "beta==1.0"))
    assert done.returncode == 0, done.stderr
    assert device.provenance() == {"alpha": "preinstalled", "beta": "reinstalled"}
    assert device.there()["beta/__init__.py"] == b"__version__ = '1.0'\n"
    again = device.install(device.document("alpha==1.0", "beta==1.0"))
    assert again.stdout == "2 preinstalled\n"


def test_a_garbled_record_comes_back_when_its_package_cannot_be_put_right(device: Device) -> None:
    device.bring("alpha==1.0")
    (device.packages / "alpha-1.0.dist-info/RECORD").write_text("garbled")
    before = device.there()
    device.tamper("alpha==1.0")
    assert device.install(device.document("alpha==1.0")).returncode == 1
    assert device.there() == before


def test_a_look_at_sizes_sees_what_is_missing_and_not_what_keeps_its_size(device: Device) -> None:
    device.bring("alpha==1.0", "beta==1.0")
    (device.packages / "alpha/__init__.py").write_text(CHANGED)
    removed(device.packages, "beta/__init__.py")
    assert (
        device.install(device.document("alpha==1.0", "beta==1.0"), "--audit", "size").returncode
        == 0
    )
    assert device.provenance() == {"alpha": "preinstalled", "beta": "reinstalled"}
    assert device.result()["audit"] == "size"
    assert device.install(device.document("alpha==1.0", "beta==1.0", audit="full")).returncode == 0
    assert device.provenance() == {"alpha": "reinstalled", "beta": "preinstalled"}


def test_a_version_that_is_there_is_not_called_checked_by_a_hash_that_is_not_its_own(
    device: Device,
) -> None:
    device.bring("alpha==1.0")
    document = device.document("alpha==1.0")
    document["packages"][0]["files"] = {"alpha-1.0-py3-none-any.whl": "0" * 64}
    done = device.install(document)
    assert done.returncode == 0, done.stderr
    assert device.provenance() == {"alpha": "preinstalled"}
    (device.packages / "alpha/__init__.py").write_text(CHANGED)
    refused = device.install(document)
    assert refused.returncode == 1, "what is put right has to have the locked hash"
    assert "does not match the lock" in refused.stderr
    assert device.there()["alpha/__init__.py"] == CHANGED.encode(), (
        "and until then it stays as it was"
    )


@pytest.mark.parametrize("mode", ["own", "shared"])
def test_a_refused_file_in_the_middle_of_several_changes_nothing(device: Device, mode: str) -> None:
    device.bring("alpha==1.0", "gamma==2.0")
    document = device.document("alpha==1.0", "beta==1.0", "gamma==1.0", "delta==1.0", mode=mode)
    device.tamper("beta==1.0")
    before = device.there()
    done = device.install(document)
    assert done.returncode == 1
    assert "a file on the index does not match the lock; nothing was installed" in done.stderr
    assert "beta" in done.stderr
    assert "Traceback" not in done.stderr
    assert device.there() == before
    assert not (device.folder / "installed.json").exists()


def test_a_wheel_that_is_in_the_cache_is_held_to_the_hash_too(device: Device) -> None:
    assert device.install(device.document("alpha==1.0", mode="own")).returncode == 0
    document = device.document("alpha==1.0", mode="own")
    document["packages"][0]["files"] = {"alpha-1.0-py3-none-any.whl": "0" * 64}
    device.uv("venv", "--quiet", "--clear", str(device.folder / "env"))
    done = device.install(document)
    assert done.returncode == 1
    assert "does not match the lock" in done.stderr


def test_what_lies_damaged_in_the_cache_is_taken_from_the_index_instead(device: Device) -> None:
    document = device.document("alpha==1.0", "beta==1.0", mode="own")
    assert device.install(document).returncode == 0
    file = device.packages / "alpha/__init__.py"
    assert file.stat().st_nlink > 1, "an edit of it is an edit of the cache"
    with file.open("a") as opened:
        opened.write("edited = True\n")
    device.uv("venv", "--quiet", "--clear", str(device.folder / "env"))
    offline = device.install(document, "--offline")
    assert offline.returncode == 2
    assert "uv's cache contains damaged files for alpha" in offline.stderr
    assert "uv cache clean alpha" in offline.stderr
    device.uv("venv", "--quiet", "--clear", str(device.folder / "env"))
    done = device.install(document, UV_OFFLINE="0")
    assert done.returncode == 0, done.stderr
    assert file.read_text() == "__version__ = '1.0'\n"
    assert device.provenance() == {"alpha": "hash-checked", "beta": "hash-checked"}
    assert device.result()["notes"] == [
        "alpha: uv's cache contained damaged files; `uv cache clean alpha` removes them"
    ]


def test_a_damaged_package_is_put_right_although_the_cache_is_damaged_with_it(
    device: Device,
) -> None:
    document = device.document("alpha==1.0")
    assert device.install(document).returncode == 0
    file = device.packages / "alpha/__init__.py"
    with file.open("r+") as opened:
        opened.write(CHANGED)
    with served(device.folder / "index") as address:
        done = device.install({**document, "indexes": {"pypi": address}})
    assert done.returncode == 0, done.stderr
    assert file.read_text() == "__version__ = '1.0'\n"
    assert device.provenance() == {"alpha": "reinstalled"}
    assert device.install(document).stdout == "1 preinstalled\n"
    with file.open("r+") as opened:
        opened.write(CHANGED)
    shutil.rmtree(device.folder / "index/alpha")
    lost = device.install(document)
    assert lost.returncode == 1
    assert "alpha" in lost.stderr


def test_a_wheel_whose_own_record_is_wrong_is_installed_and_told(device: Device) -> None:
    wheel = device.wheels["alpha==1.0"]
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["alpha-1.0.dist-info/RECORD"] = files["alpha-1.0.dist-info/RECORD"].replace(
        b",20\n", b",21\n"
    )
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    shutil.rmtree(device.folder / "index/alpha")
    make_index(device.folder / "index", (wheel,))
    done = device.install(device.document("alpha==1.0"))
    assert done.returncode == 0, done.stderr
    assert device.provenance() == {"alpha": "hash-checked"}
    note = (
        "alpha: its RECORD does not match the files in its wheel: alpha/__init__.py has 20 "
        "bytes, expected 21"
    )
    assert device.result()["notes"] == [note]
    assert device.result()["packages"]["alpha"]["record_fits"] is False
    assert f"note: {note}" in done.stdout


def test_a_file_that_two_packages_bring_is_no_damage(device: Device) -> None:
    """As README.md or tests/__init__.py of some published wheels; the cache is not to blame, and
    nothing is fetched anew.
    """
    for name, content in (("alpha", b"of alpha\n"), ("beta", b"of beta, and longer\n")):
        wheel = device.wheels[f"{name}==1.0"]
        with zipfile.ZipFile(wheel) as archive:
            files = {inner: archive.read(inner) for inner in archive.namelist()}
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        files[f"{name}-1.0.dist-info/RECORD"] = (
            f"shared.txt,sha256={digest},{len(content)}\n".encode()
            + files[f"{name}-1.0.dist-info/RECORD"]
        )
        with zipfile.ZipFile(wheel, "w") as archive:
            for inner, held in {**files, "shared.txt": content}.items():
                archive.writestr(inner, held)
        shutil.rmtree(device.folder / "index" / name)
    make_index(device.folder / "index", tuple(device.wheels.values()))
    document = device.document("alpha==1.0", "beta==1.0", mode="own")
    assert device.install(document).returncode == 0
    assert device.result()["notes"] == []
    device.uv("venv", "--quiet", "--clear", str(device.folder / "env"))
    offline = device.install(document, "--offline")
    assert offline.returncode == 0, offline.stderr
    assert device.install(document, "--offline").stdout == "2 preinstalled\n"
    (device.packages / "shared.txt").write_text("of neither")
    assert device.install(document).returncode == 0
    assert set(device.provenance().values()) == {"reinstalled"}


@pytest.mark.parametrize("mode", ["own", "shared"])
def test_what_a_package_requires_is_not_fetched_beside_the_lock(device: Device, mode: str) -> None:
    needy = device.wheels["needy==1.0"] = make_wheel(
        device.folder / "wheels", "needy", "1.0", requires=("theirs", "nowhere>=3")
    )
    make_index(device.folder / "index", (needy,))
    done = device.install(device.document("needy==1.0", mode=mode))
    assert done.returncode == 0, done.stderr
    assert [path.name for path in device.packages.glob("*.dist-info")] == ["needy-1.0.dist-info"]


@pytest.mark.long(after=1)
@pytest.mark.parametrize("mode", ["own", "shared"])
def test_only_what_is_locked_as_a_source_file_is_built(device: Device, mode: str) -> None:
    source = device.wheels["src==1.0"] = make_source(device.folder / "sources", "src", "1.0")
    make_index(device.folder / "index", (source,))
    document = device.document("src==1.0", "alpha==1.0", mode=mode)
    done = device.install(document)
    assert done.returncode == 0, done.stderr
    assert device.provenance() == {"src": "hash-checked", "alpha": "hash-checked"}
    device.uv("venv", "--quiet", "--clear", str(device.folder / "env"))
    document["packages"][0]["files"] = {"src-1.0-py3-none-any.whl": sha256(source)}
    refused = device.install(document)
    assert refused.returncode != 0
    assert "no usable wheels" in refused.stderr or "no wheels" in refused.stderr
    assert list(device.packages.glob("*.dist-info")) == []


def make_source(folder: Path, name: str, version: str) -> Path:
    """Write a source distribution with a build backend of its own, which needs nothing."""
    wheel = make_wheel(folder, name, version)
    backend = (
        f"import base64\ndef build_wheel(to, *_):\n    open(to + '/{wheel.name}', "
        f"'wb').write(base64.b64decode({base64.b64encode(wheel.read_bytes())!r}))\n"
    )
    files = {
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "pyproject.toml": (
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        ),
        "backend.py": backend + f"    return {wheel.name!r}\n",
    }
    path = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for inner, text in files.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{inner}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def test_a_package_comes_from_the_index_that_it_is_bound_to(device: Device) -> None:
    own = make_wheel(
        device.folder / "own", "alpha", "1.0", code="__version__ = 'from its own index'\n"
    )
    address = make_index(
        device.folder / "bound",
        (
            own,
            make_wheel(
                device.folder / "own", "beta", "1.0", code="__version__ = 'not asked for'\n"
            ),
        ),
    )
    document = device.document(
        "alpha==1.0", "beta==1.0", mode="own", indexes={"pypi": device.index, "bound": address}
    )
    document["packages"][0] |= {"index": "bound"}
    refused = device.install(document)
    assert refused.returncode == 1, "the file of the default index is not asked for"
    device.wheels["alpha==1.0"] = own
    document["packages"][0] |= {**device.document("alpha==1.0")["packages"][0], "index": "bound"}
    done = device.install(document)
    assert done.returncode == 0, done.stderr
    assert "from its own index" in (device.packages / "alpha/__init__.py").read_text()


def test_the_index_of_a_package_that_is_there_as_wanted_is_not_asked(device: Device) -> None:
    device.bring("alpha==1.0")
    document = device.document("alpha==1.0", "beta==1.0")
    document["packages"][0]["index"] = "gone"
    document["indexes"]["gone"] = "http://127.0.0.1:9/simple"
    done = device.install(document)
    assert done.returncode == 0, done.stderr
    assert device.provenance() == {"alpha": "preinstalled", "beta": "hash-checked"}
    device.uv("pip", "uninstall", "--quiet", "--python", str(device.python), "alpha")
    assert "127.0.0.1:9" in device.install(document).stderr, (
        "where it is missing, that index and no other is asked"
    )


@pytest.mark.parametrize(("mode", "verb"), [("own", "sync"), ("shared", "install")])
def test_uv_is_told_to_take_nothing_without_a_hash_and_to_remove_nothing_of_others(
    device: Device, mode: str, verb: str
) -> None:
    noting = device.folder / "noting-uv"
    noting.write_text(f'#!/bin/sh\necho "$@" >> {device.folder / "words"}\nexec {UV} "$@"\n')
    noting.chmod(0o755)
    device.bring("gamma==2.0")
    assert (
        device.install(
            device.document("alpha==1.0", "gamma==1.0", mode=mode), "--uv", str(noting)
        ).returncode
        == 0
    )
    (words,) = (device.folder / "words").read_text().splitlines()
    assert words.startswith(f"pip {verb} ")
    assert "--require-hashes" in words.split()
    assert not {"--exact", "--break-system-packages", "--system"} & set(words.split())


def test_the_result_is_json_of_plain_values(device: Device) -> None:
    assert device.install(device.document(), "--uv", UV).stdout == "nothing to install\n"
    assert json.loads((device.folder / "installed.json").read_text())["packages"] == {}
