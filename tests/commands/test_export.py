"""A lock as another tool's document, read by that tool: uv, pip, and CycloneDX's validator."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uv
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from provision.cli.app import app
from provision.commands.export import ExportFormat
from tests.rig import MINOR, TAG, Bench, make_index, make_wheel, served, small_spec
from tests.support import require

LINUX = f"{TAG}-{TAG}-manylinux_2_28_x86_64"
MAC = f"{TAG}-{TAG}-macosx_14_0_arm64"
BOTH = "platforms: [linux-x86_64, macos-arm64]\n"
FORMATS = [str(form) for form in ExportFormat]


@pytest.fixture
def web(bench: Bench, tmp_path: Path) -> Iterator[str]:
    """The address of the bench's index as a server gives it, for specs that name it."""
    with served(tmp_path / "index") as url:
        yield url


def own_spec(url: str, *packages: str, extra: str = "") -> str:
    """A spec whose packages all come from an index of its own."""
    listed = "".join(f"  - {{name: {package}, index: ours}}\n" for package in packages)
    return (
        f'gpu: none\npython: "{MINOR}"\npackages:\n{listed}training: {{framework: '
        f'none}}\nindexes: {{ours: {{url: "{url}"}}}}\n{extra}'
    )


def locked(bench: Bench, text: str, **changes: str) -> None:
    bench.spec(text)
    done = bench.run("lock", "spec.yaml", **changes)
    assert done.returncode == 0, done.stderr


def exported(bench: Bench, form: str, *words: str, **changes: str) -> str:
    done = bench.run("export", "spec.yaml", "--format", form, *words, **changes)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(bench: Bench, code: int, *words: str, **changes: str) -> str:
    """What is said on stderr by an export that ends with `code`, without writing a document."""
    done = bench.run("export", "spec.yaml", *words, **changes)
    assert (done.returncode, done.stdout) == (code, ""), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def tool(
    bench: Bench, *words: str | Path, folder: Path | None = None, **changes: str
) -> subprocess.CompletedProcess[str]:
    """Run uv in a folder of the bench."""
    argv = [uv.find_uv_bin(), *map(str, words)]
    return subprocess.run(
        argv,
        cwd=folder or bench.folder,
        env=bench.environment(**changes),
        capture_output=True,
        text=True,
        timeout=600,
    )


def venv(bench: Bench) -> Path:
    path = bench.folder / "made"
    done = tool(bench, "venv", "--quiet", "--python", sys.executable, path)
    assert done.returncode == 0, done.stderr
    return path / "bin/python"


def installed(bench: Bench, python: Path) -> dict[str, str]:
    return {
        row["name"]: row["version"]
        for row in json.loads(
            tool(bench, "pip", "list", "--format", "json", "--python", python).stdout
        )
    }


def versions(bench: Bench) -> dict[str, str]:
    return {
        row["name"]: row["version"]
        for row in json.loads((bench.folder / "spec.lock").read_text())["packages"]
    }


def torch_rig(bench: Bench, tmp_path: Path) -> str:
    """Put torch 2.13.0 on the default index, and give the address of one with its CPU build for
    Linux; trainer 1.0 needs torch.
    """
    wheels = tmp_path / "wheels"
    plain = tuple(
        make_wheel(wheels, "torch", "2.13.0", tag=tag, requires=("alpha",)) for tag in (LINUX, MAC)
    )
    make_index(
        tmp_path / "index", (*plain, make_wheel(wheels, "trainer", "1.0", requires=("torch>=2",)))
    )
    return make_index(
        tmp_path / "cpu",
        (make_wheel(tmp_path / "c", "torch", "2.13.0+cpu", tag=LINUX, requires=("alpha",)),),
    )


# pylock


@pytest.mark.long
def test_uv_installs_from_a_pylock(bench: Bench, web: str) -> None:
    locked(bench, own_spec(web, "beta", "alpha"))
    done = bench.run("export", "spec.yaml", "--format", "pylock", "--out", "pylock.local.toml")
    assert (done.returncode, done.stdout) == (
        0,
        "wrote pylock.local.toml: pylock from spec.lock, target local\n",
    ), done.stderr
    python = venv(bench)
    synced = tool(
        bench,
        "pip",
        "sync",
        "--python",
        python,
        "pylock.local.toml",
        UV_CACHE_DIR=str(bench.folder / "other-cache"),
    )
    assert synced.returncode == 0, synced.stderr
    assert installed(bench, python) == versions(bench) == {"alpha": "1.0", "beta": "1.0"}


def test_uv_refuses_a_pylock_whose_hash_is_not_the_files(bench: Bench, web: str) -> None:
    locked(bench, own_spec(web, "alpha"))
    text = exported(bench, "pylock")
    sha256 = tomllib.loads(text)["packages"][0]["wheels"][0]["hashes"]["sha256"]
    (bench.folder / "pylock.toml").write_text(text.replace(sha256, "0" * 64))
    python = venv(bench)
    synced = tool(bench, "pip", "sync", "--python", python, "pylock.toml")
    assert synced.returncode != 0
    assert "Hash mismatch" in synced.stderr
    assert installed(bench, python) == {}


def test_a_pylock_is_what_the_standard_says(bench: Bench, web: str) -> None:
    locked(bench, own_spec(web, "alpha"))
    document = tomllib.loads(exported(bench, "pylock"))
    row = json.loads((bench.folder / "spec.lock").read_text())["packages"][0]
    ((name, sha256),) = row["files"].items()
    assert document["lock-version"] == "1.0"
    assert document["requires-python"] == f"=={MINOR}.*"
    assert document["environments"] == ["sys_platform == 'linux' and platform_machine == 'x86_64'"]
    wheel = {"name": name, "url": f"{web}/alpha/{name}", "hashes": {"sha256": sha256}}
    assert document["packages"] == [
        {"name": "alpha", "version": "2.0", "index": web, "wheels": [wheel]}
    ]


def test_wheels_that_stand_in_for_pytorchs_index_do_not_show(bench: Bench, tmp_path: Path) -> None:
    """Whatever stood in for it, a build of PyTorch is named where PyTorch serves it."""
    torch_rig(bench, tmp_path)
    folder = tmp_path / "alone"
    make_wheel(folder, "torch", "2.13.0+cpu", tag=LINUX)
    here = {"PIP_FIND_LINKS": str(folder)}
    locked(bench, small_spec("torch==2.13.*", extra="platforms: [linux-x86_64]\n"), **here)
    done = bench.run("export", "spec.yaml", "--format", "pylock", **here)
    assert done.returncode == 0, done.stderr
    (row,) = tomllib.loads(done.stdout)["packages"]
    assert row["index"] == "https://download.pytorch.org/whl/cpu"
    assert (
        row["wheels"][0]["url"]
        == f"https://download.pytorch.org/whl/cpu/torch-2.13.0%2Bcpu-{LINUX}.whl"
    )
    assert str(tmp_path) not in done.stdout
    assert "warning: no index has confirmed the hashes in the lock for torch" in done.stderr


def test_a_file_without_a_public_address_is_refused(bench: Bench) -> None:
    locked(bench, small_spec("alpha"))
    said = refused(bench, 2, "--format", "pylock")
    assert "some locked files have no known public URL" in said
    assert "alpha-2.0-py3-none-any.whl" in said
    assert "unset PROVISION_INDEX_PYPI and pip's index-url" in said
    for form in ("requirements", "cyclonedx", "pyproject"):
        assert exported(bench, form)


def test_an_override_of_the_specs_own_index_does_not_get_into_a_pylock(
    bench: Bench, web: str
) -> None:
    locked(bench, own_spec(web, "alpha"))
    said = refused(bench, 2, "--format", "pylock", PROVISION_INDEX_OURS=bench.index)
    assert (
        f"their URLs on index ours (on this machine: {bench.index}) are valid only on this "
        "machine" in said
    )
    assert f"PROVISION_INDEX_OURS={web}" in said


def test_a_package_that_the_index_no_longer_has_is_said(
    bench: Bench, web: str, tmp_path: Path
) -> None:
    locked(bench, own_spec(web, "alpha"))
    shutil.rmtree(tmp_path / "index" / "alpha")
    said = refused(bench, 1, "--format", "pylock", UV_CACHE_DIR=str(bench.folder / "other-cache"))
    assert "some of the locked files are no longer on their index" in said
    assert "provision lock --upgrade" in said


def test_a_file_that_the_index_no_longer_has_is_named(
    bench: Bench, web: str, tmp_path: Path
) -> None:
    older = f"{TAG}-{TAG}-manylinux_2_17_x86_64"
    make_index(
        tmp_path / "index",
        tuple(make_wheel(tmp_path / "wheels", "native", "1.0", tag=tag) for tag in (LINUX, older)),
    )
    locked(bench, own_spec(web, "native"))
    make_index(tmp_path / "index", (tmp_path / "wheels" / f"native-1.0-{LINUX}.whl",))
    said = refused(bench, 1, "--format", "pylock", UV_CACHE_DIR=str(bench.folder / "other-cache"))
    assert f"native-1.0-{older}.whl is not on index ours" in said


def test_another_file_under_a_locked_name_is_said(bench: Bench, web: str, tmp_path: Path) -> None:
    locked(bench, own_spec(web, "alpha"))
    shutil.rmtree(tmp_path / "index" / "alpha")
    make_index(
        tmp_path / "index",
        (make_wheel(tmp_path / "changed", "alpha", "2.0", code="changed = True\n"),),
    )
    said = refused(bench, 1, "--format", "pylock", UV_CACHE_DIR=str(bench.folder / "other-cache"))
    assert "a file on an index differs from the locked file" in said
    assert "alpha-2.0-py3-none-any.whl on index ours has sha256" in said


def test_without_network_the_cache_will_do_and_else_the_way_out_is_said(
    bench: Bench, tmp_path: Path
) -> None:
    with served(tmp_path / "index") as url:
        locked(bench, own_spec(url, "alpha"))
        text = exported(bench, "pylock")
    assert exported(bench, "pylock", "--offline") == text
    said = refused(bench, 2, "--format", "pylock", UV_CACHE_DIR=str(bench.folder / "other-cache"))
    assert "a package index could not be reached" in said
    assert "the formats `requirements`, `cyclonedx` and `pyproject` need no URLs" in said
    for form in ("requirements", "cyclonedx", "pyproject"):
        assert exported(bench, form, UV_CACHE_DIR=str(bench.folder / "third-cache"))


@pytest.mark.long(after=1)
@pytest.mark.parametrize("place", ["web", "disk"])
def test_a_folder_of_wheels_beside_the_specs_own_index_does_not_show(
    bench: Bench, web: str, tmp_path: Path, place: str
) -> None:
    url = {"web": web, "disk": bench.index}[place]
    locked(bench, own_spec(url, "alpha"))
    text = exported(bench, "pylock", PIP_FIND_LINKS=str(tmp_path / "wheels"))
    assert f'url = "{url}/alpha/alpha-2.0-py3-none-any.whl"' in text
    assert text == exported(bench, "pylock")


def test_a_folder_of_wheels_beside_the_default_index_is_never_named(
    bench: Bench, tmp_path: Path
) -> None:
    locked(bench, small_spec("alpha"))
    said = refused(bench, 2, "--format", "pylock", PIP_FIND_LINKS=str(tmp_path / "wheels"))
    assert "remove local wheel folders from pip's find-links" in said


def test_another_wheel_of_this_machine_is_not_taken_for_the_locked_one(
    bench: Bench, tmp_path: Path
) -> None:
    cpu = torch_rig(bench, tmp_path)
    locked(bench, small_spec("torch==2.13.*"), PROVISION_INDEX_PYTORCH_CPU=cpu)
    make_wheel(
        tmp_path / "own-build",
        "torch",
        "2.13.0+cpu",
        tag=LINUX,
        requires=("alpha",),
        code="own = True\n",
    )
    said = refused(bench, 1, "--format", "pylock", PIP_FIND_LINKS=str(tmp_path / "own-build"))
    assert (
        f"torch-2.13.0+cpu-{LINUX}.whl on index pytorch-cpu (on this machine: local wheels) has "
        "sha256" in said
    )


@pytest.mark.network
def test_uv_installs_from_the_public_index_by_a_pylock(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(
        small_spec(
            "rich",
            "colorama; sys_platform == 'win32'",
            extra="platforms: [linux-x86_64, windows-x86_64]\n",
        )
    )
    line = [sys.executable, "-m", "provision"]
    for words in (["lock"], ["export", "--format", "pylock", "--out", "pylock.toml"]):
        done = subprocess.run(
            [*line, words[0], "spec.yaml", *words[1:]],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
        )
        require("index", "could not be reached" not in done.stderr, done.stderr)
        if "no known public URL" in done.stderr:
            pytest.skip("the mirror of this machine does not keep the paths of PyPI's files")
        assert done.returncode == 0, done.stderr
    document = tomllib.loads((tmp_path / "pylock.toml").read_text())
    assert {
        urlsplit(wheel["url"]).scheme for row in document["packages"] for wheel in row["wheels"]
    } == {"https"}
    assert not any("index" in row for row in document["packages"])
    python = tmp_path / "made/bin/python"
    subprocess.run(
        [uv.find_uv_bin(), "venv", "--quiet", "--python", sys.executable, tmp_path / "made"],
        check=True,
    )
    synced = subprocess.run(
        [uv.find_uv_bin(), "pip", "sync", "--python", python, "pylock.toml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    require("index", "error sending request" not in synced.stderr, synced.stderr)
    assert synced.returncode == 0, synced.stderr
    assert subprocess.run([python, "-c", "import rich"]).returncode == 0


# requirements


def pip(bench: Bench, python: Path, file: str) -> subprocess.CompletedProcess[str]:
    """Install as the file's own comment says."""
    words = ["install", "--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", file]
    argv = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "--disable-pip-version-check",
        "--no-cache-dir",
        *words,
    ]
    return subprocess.run(
        argv, cwd=bench.folder, env=bench.environment(), capture_output=True, text=True, timeout=600
    )


def test_pip_installs_from_requirements_and_refuses_another_hash(bench: Bench, web: str) -> None:
    locked(bench, own_spec(web, "beta", "alpha"))
    exported(bench, "requirements", "--out", "requirements.txt")
    text = (bench.folder / "requirements.txt").read_text()
    assert f"--index-url {web}\n" in text
    assert "--extra-index-url" not in text
    assert "pip install --require-hashes --no-deps --only-binary :all: -r FILE" in text
    python = venv(bench)
    digits = text.partition("--hash=sha256:")[2][:64]
    (bench.folder / "changed.txt").write_text(text.replace(digits, digits[::-1]))
    done = pip(bench, python, "changed.txt")
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert installed(bench, python) == {}
    done = pip(bench, python, "requirements.txt")
    assert done.returncode == 0, done.stderr
    assert installed(bench, python) == versions(bench)


def test_requirements_name_the_indexes_that_are_used_and_tell_platforms_apart(
    bench: Bench, tmp_path: Path
) -> None:
    cpu = torch_rig(bench, tmp_path)
    locked(bench, small_spec("torch==2.13.*", extra=BOTH), PROVISION_INDEX_PYTORCH_CPU=cpu)
    text = exported(bench, "requirements")
    assert "\n--extra-index-url https://download.pytorch.org/whl/cpu\n" in text
    assert "--index-url" not in text.replace("--extra-index-url", ""), (
        "the default index is the installer's own"
    )
    assert (
        "torch==2.13.0 ; sys_platform == 'darwin' and platform_machine == 'arm64' \\\n    "
        "--hash=sha256:" in text
    )
    assert (
        "torch==2.13.0+cpu ; sys_platform == 'linux' and platform_machine == 'x86_64' \\\n "
        "   --hash=sha256:" in text
    )
    assert "\nalpha==2.0 \\\n    --hash=sha256:" in text


# cyclonedx


def flaws(text: str) -> object:
    return JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)


def test_a_bill_of_materials_is_valid_and_a_damaged_one_is_not(
    bench: Bench, tmp_path: Path
) -> None:
    cpu = torch_rig(bench, tmp_path)
    locked(
        bench,
        "name: our-work\n" + small_spec("torch==2.13.*", "beta", extra=BOTH),
        PROVISION_INDEX_PYTORCH_CPU=cpu,
    )
    text = exported(bench, "cyclonedx")
    assert flaws(text) is None
    assert flaws(text.replace('"library"', '"libary"')) is not None
    assert flaws(text.replace('"purl"', '"url"')) is not None
    assert exported(bench, "cyclonedx") == text


def test_a_bill_of_materials_says_what_comes_from_where_and_what_needs_it(
    bench: Bench, tmp_path: Path
) -> None:
    cpu = torch_rig(bench, tmp_path)
    locked(bench, "name: our-work\n" + small_spec("trainer"), PROVISION_INDEX_PYTORCH_CPU=cpu)
    document: dict[str, Any] = json.loads(exported(bench, "cyclonedx"))
    torch = "pkg:pypi/torch@2.13.0%2Bcpu?repository_url=https://download.pytorch.org/whl/cpu"
    needs = {row["ref"]: row["dependsOn"] for row in document["dependencies"]}
    assert document["metadata"]["component"]["name"] == "our-work"
    assert needs == {
        "provision:our-work": ["pkg:pypi/trainer@1.0"],
        "pkg:pypi/trainer@1.0": [torch],
        torch: ["pkg:pypi/alpha@2.0"],
        "pkg:pypi/alpha@2.0": [],
    }
    component = next(one for one in document["components"] if one["name"] == "torch")
    sha256 = hashlib.sha256(
        (tmp_path / "c" / f"torch-2.13.0+cpu-{LINUX}.whl").read_bytes()
    ).hexdigest()
    assert component["hashes"] == [{"alg": "SHA-256", "content": sha256}]
    assert {(one["name"], one["value"]) for one in component["properties"]} == {
        ("provision:index", "pytorch-cpu"),
        ("provision:flavour", "cpu"),
        ("provision:origin", "unconfirmed"),
    }


# pyproject


def test_uv_locks_the_same_versions_from_a_pyproject(bench: Bench, tmp_path: Path) -> None:
    """Newer versions have appeared since, and torch comes in by another package: each stays where
    and as it was locked.
    """
    cpu = torch_rig(bench, tmp_path)
    make_index(tmp_path / "index", (make_wheel(tmp_path / "wheels", "early", "1.0rc1"),))
    locked(
        bench,
        small_spec(
            "beta",
            "trainer",
            "early>=1.0rc1",
            extra=f'{BOTH}indexes: {{pytorch-cpu: {{url: "{cpu}"}}}}\n',
        ),
    )
    newer = tuple(
        make_wheel(tmp_path / "newer", name, "1.5") for name in ("beta", "trainer", "early")
    )
    make_index(tmp_path / "index", (*(tmp_path / "wheels").glob("*.whl"), *newer))
    make_index(
        tmp_path / "cpu",
        (
            *(tmp_path / "c").glob("*.whl"),
            make_wheel(tmp_path / "newer", "torch", "2.14.0+cpu", tag=LINUX),
        ),
    )
    folder = bench.folder / "uv-project"
    folder.mkdir()
    exported(bench, "pyproject", "--out", "uv-project/pyproject.toml")
    done = tool(
        bench, "lock", "--python", sys.executable, folder=folder, UV_DEFAULT_INDEX=bench.index
    )
    assert done.returncode == 0, done.stderr
    rows = [
        row
        for row in tomllib.loads((folder / "uv.lock").read_text())["package"]
        if row["source"] != {"virtual": "."}
    ]
    both = {("torch", "2.13.0"), ("torch", "2.13.0+cpu")}
    assert {(row["name"], row["version"]) for row in rows} == both | {
        ("alpha", "1.0"),
        ("beta", "1.0"),
        ("early", "1.0rc1"),
        ("trainer", "1.0"),
    }
    assert [
        row["source"]["registry"].endswith("/cpu") for row in rows if row["version"] == "2.13.0+cpu"
    ] == [True]


def test_without_its_constraints_a_pyproject_would_choose_others(
    bench: Bench, tmp_path: Path
) -> None:
    locked(bench, small_spec("alpha"))
    make_index(
        tmp_path / "index",
        (*(tmp_path / "wheels").glob("*.whl"), make_wheel(tmp_path / "newer", "alpha", "3.0")),
    )
    text = exported(bench, "pyproject")
    chosen = []
    for content in (
        text,
        "\n".join(
            line for line in text.splitlines() if not line.startswith("constraint-dependencies")
        ),
    ):
        (bench.folder / "pyproject.toml").write_text(content)
        (bench.folder / "uv.lock").unlink(missing_ok=True)
        done = tool(bench, "lock", "--python", sys.executable, UV_DEFAULT_INDEX=bench.index)
        assert done.returncode == 0, done.stderr
        rows = tomllib.loads((bench.folder / "uv.lock").read_text())["package"]
        chosen += [row["version"] for row in rows if row["name"] == "alpha"]
    assert chosen == ["2.0", "3.0"]


# Targets, files and bad input


def test_targets_that_share_their_environments_share_a_document(bench: Bench) -> None:
    locked(
        bench, small_spec("alpha", extra="targets: {local: {kind: local}, there: {kind: local}}\n")
    )
    assert exported(bench, "requirements") == exported(bench, "requirements", "--target", "there")
    document = json.loads(exported(bench, "requirements", "--output-format", "json"))
    assert (document["targets"], document["out"]) == (["local", "there"], None)
    assert document["text"] == exported(bench, "requirements")


def test_targets_with_environments_of_their_own_are_to_be_named(bench: Bench) -> None:
    targets = (
        'targets: {local: {kind: local}, colab: {kind: colab, runtime: "2026.07", isolation: '
        "venv}}\n"
    )
    locked(bench, small_spec("alpha", extra=BOTH + targets))
    said = refused(bench, 2, "--format", "requirements")
    assert "the spec has several targets" in said
    assert "local (local), colab (colab)" in said
    assert "provision export spec.yaml --target local" in said
    assert "For Python" in exported(bench, "requirements", "--target", "colab")
    assert "macos-arm64" not in exported(bench, "requirements", "--target", "colab")
    assert "macos-arm64" in exported(bench, "requirements", "--target", "local")


@pytest.mark.long(after=2)
@pytest.mark.parametrize("form", FORMATS)
def test_no_lock_and_a_stale_one_are_refused(bench: Bench, form: str) -> None:
    bench.spec(small_spec("alpha"))
    said = refused(bench, 1, "--format", form)
    assert "there is no spec.lock" in said
    assert "provision lock spec.yaml" in said
    locked(bench, small_spec("alpha"))
    bench.spec(small_spec("alpha", "beta"))
    assert "the spec changed: packages: + beta" in refused(bench, 1, "--format", form)


@pytest.mark.long(after=2)
@pytest.mark.parametrize("form", FORMATS)
def test_a_damaged_lock_is_refused(bench: Bench, form: str) -> None:
    locked(bench, small_spec("alpha"))
    path = bench.folder / "spec.lock"
    path.write_text(path.read_text().replace('"2.0"', '"1.0"'))
    assert "was edited by hand or truncated" in refused(bench, 1, "--format", form)


def test_words_that_do_not_fit_are_refused(bench: Bench) -> None:
    locked(bench, small_spec("alpha"))
    assert "the spec has no target `nowhere`" in refused(
        bench, 2, "--format", "requirements", "--target", "nowhere"
    )
    assert "is not one of 'pylock', 'requirements'" in refused(bench, 2, "--format", "conda")
    assert "Missing option '--format'" in refused(bench, 2)


def test_a_file_that_cannot_be_written_is_said_before_any_work(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))  # there is no lock, and that is not what is said
    assert "there is no folder nowhere" in refused(
        bench, 2, "--format", "requirements", "--out", "nowhere/requirements.txt"
    )
    assert "installers accept only pylock.toml and pylock.NAME.toml" in refused(
        bench, 2, "--format", "pylock", "--out", "x.toml"
    )
    assert "it is a folder" in refused(bench, 2, "--format", "requirements", "--out", "home")


@pytest.mark.parametrize("form", ["requirements", "cyclonedx", "pyproject"])
def test_a_file_of_somebody_else_is_replaced_only_with_force(bench: Bench, form: str) -> None:
    locked(bench, small_spec("alpha"))
    out = bench.folder / "pyproject.toml"
    out.write_text("# mine; see provision export\n")
    said = refused(bench, 2, "--format", form, "--out", "pyproject.toml")
    assert "pyproject.toml exists and was not written by `provision export`" in said
    assert out.read_text() == "# mine; see provision export\n"
    exported(bench, form, "--out", "pyproject.toml", "--force")
    text = out.read_text()
    assert text == exported(bench, form)
    exported(bench, form, "--out", "pyproject.toml")


def test_the_words_for_formats_are_those_that_are_written() -> None:
    parameters = {parameter.name: parameter for parameter in app.commands["export"].params}
    option = parameters["export_format"]
    assert list(option.type.choices) == FORMATS  # type: ignore[attr-defined]
