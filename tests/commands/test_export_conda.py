"""A lock as conda's documents, read back by py-rattler and pip."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import rattler
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from rattler.explicit_environment import ExplicitEnvironmentSpec
from rattler.index import index_fs

from tests.conda_rig import CondaChannel, assemble
from tests.rig import Bench, small_spec

CONDA = "conda_packages: [ffmpeg=7, needs-alpha]\ntargets: {local: {kind: local, manager: conda}}\n"


@pytest.fixture
def locked(bench: Bench, conda: CondaChannel) -> dict[str, Any]:
    """The lock of a spec with packages of both kinds."""
    bench.spec(small_spec("gamma", extra=CONDA))
    done = bench.run("lock", "spec.yaml", **conda.variables())
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((bench.folder / "spec.lock").read_text())
    return found


def exported(bench: Bench, form: str, **changes: str) -> str:
    """A document, made without any mirror's address: nothing is asked of the network."""
    done = bench.run("export", "spec.yaml", "--format", form, **changes)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_environment_yml_names_every_package_by_its_build(
    bench: Bench, conda: CondaChannel, locked: dict[str, Any]
) -> None:
    document = yaml.safe_load(exported(bench, "environment.yml"))
    assert (document["name"], document["channels"]) == ("spec", ["conda-forge"])
    specs = [rattler.MatchSpec(text) for text in document["dependencies"] if isinstance(text, str)]
    gateway = rattler.Gateway(cache_dir=bench.folder / "cache")
    platforms: Any = ["linux-64", "noarch"]
    there = [
        r
        for source in asyncio.run(
            gateway.query(
                [conda.address], platforms, ["python", "ffmpeg", "pip", "alpha", "needs-alpha"]
            )
        )
        for r in source
    ]
    matched = {
        str(record.file_name) for record in there if any(spec.matches(record) for spec in specs)
    }
    assert matched == {row["file"] for row in locked["conda"]}
    assert len(specs) == len(matched)


@pytest.mark.long
def test_the_pip_part_is_taken_by_pip_with_its_hashes(bench: Bench, locked: dict[str, Any]) -> None:
    lines = yaml.safe_load(exported(bench, "environment.yml"))["dependencies"][-1]["pip"]
    assert [line.split()[0] for line in lines] == [
        "--only-binary",
        "gamma==1.0",
    ]  # alpha comes from conda
    requirements = bench.folder / "requirements.txt"
    words = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--dest",
        "there",
        "--index-url",
        bench.index,
        "-r",
        requirements.name,
    ]
    for text, code in (
        ("\n".join(lines), 0),
        ("\n".join(lines).replace("sha256:", "sha256:" + "0" * 8)[:-8], 1),
    ):
        requirements.write_text(text)
        done = subprocess.run(
            words,
            cwd=bench.folder,
            env=bench.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr


def test_the_explicit_list_is_read_back_with_public_addresses(
    bench: Bench, conda: CondaChannel, locked: dict[str, Any]
) -> None:
    text = exported(bench, "conda-explicit", **conda.variables())
    found = ExplicitEnvironmentSpec.from_str(text)
    assert str(found.platform) == "linux-64"
    root = str(rattler.Channel("conda-forge").base_url)
    urls = [entry.url.partition("#") for entry in found.packages]
    assert [url for url, _, _ in urls] == [
        f"{root}{row['subdir']}/{row['file']}" for row in locked["conda"]
    ]
    for (url, _, digest), row in zip(urls, locked["conda"], strict=True):
        assert (
            hashlib.md5(
                (conda.folder / url.removeprefix(root)).read_bytes(), usedforsecurity=False
            ).hexdigest()
            == digest
            == row["md5"]
        )
    assert conda.address not in text


def test_the_same_lock_gives_the_same_bytes(
    bench: Bench, conda: CondaChannel, locked: dict[str, Any]
) -> None:
    for form in ("environment.yml", "conda-explicit"):
        text = exported(bench, form)
        assert text == exported(bench, form, **conda.variables())
        assert "nodefaults" not in text
        assert f"Made by `provision export --format {form}`" in text.splitlines()[0]


def test_a_private_channel_stands_with_its_address(
    bench: Bench, conda: CondaChannel, tmp_path: Path
) -> None:
    assemble(tmp_path / "own", "ours", "1.0")
    (tmp_path / "own/noarch").mkdir()
    asyncio.run(index_fs(tmp_path / "own", write_zst=False, write_shards=False))
    bench.spec(
        small_spec(
            "alpha",
            extra=CONDA.replace("[ffmpeg=7, needs-alpha]", "[lab::ours]")
            + "indexes: {lab: {url: https://conda.example.com/lab}}\n",
        )
    )
    done = bench.run(
        "lock", "spec.yaml", **conda.variables(), PROVISION_CHANNEL_LAB=(tmp_path / "own").as_uri()
    )
    assert done.returncode == 0, done.stderr
    document = yaml.safe_load(exported(bench, "environment.yml"))
    assert document["channels"] == ["https://conda.example.com/lab", "conda-forge"]
    assert document["dependencies"][0] == "https://conda.example.com/lab::ours=1.0=h0_0"
    assert "https://conda.example.com/lab/linux-64/ours-1.0-h0_0.conda#" in exported(
        bench, "conda-explicit"
    )


def test_other_targets_and_several_platforms_are_refused(bench: Bench, conda: CondaChannel) -> None:
    bench.spec(small_spec("alpha"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    done = bench.run("export", "spec.yaml", "--format", "environment.yml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "environment.yml needs a target with `manager: conda`" in done.stderr
    bench.spec(
        small_spec(
            "alpha",
            extra="platforms: [linux-x86_64, macos-arm64]\ntargets: {local: {kind: local, "
            "manager: conda}}\n",
        )
    )
    assert bench.run("lock", "spec.yaml", **conda.variables()).returncode == 0
    done = bench.run("export", "spec.yaml", "--format", "conda-explicit")
    assert (done.returncode, done.stdout) == (2, "")
    assert "conda-explicit covers only one platform" in done.stderr
    assert "linux-x86_64, macos-arm64" in done.stderr
    assert (
        "write a second spec in the same folder with `extends: spec.yaml` and `platforms: "
        "[linux-x86_64]`" in " ".join(done.stderr.split())
    )
    (bench.folder / "one.yaml").write_text("extends: spec.yaml\nplatforms: [linux-x86_64]\n")
    assert bench.run("lock", "one.yaml", **conda.variables()).returncode == 0
    done = bench.run("export", "one.yaml", "--format", "conda-explicit")
    assert (done.returncode, "# platform: linux-64" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize(
    ("platform", "subdir"), [("macos-arm64", "osx-arm64"), ("windows-x86_64", "win-64")]
)
def test_specs_for_other_systems_are_linted_locked_and_rendered(
    bench: Bench, conda: CondaChannel, platform: str, subdir: str
) -> None:
    words = (
        f"platforms: [{platform}]\nconda_packages: [needs-alpha]\ntargets: {{local: {{kind: "
        f"local, manager: conda}}}}\n"
    )
    bench.spec(small_spec("gamma", extra=words))
    done = bench.run("lint", "spec.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    done = bench.run("lock", "spec.yaml", **conda.variables())
    assert done.returncode == 0, done.stderr
    found = ExplicitEnvironmentSpec.from_str(exported(bench, "conda-explicit"))
    assert str(found.platform) == subdir
    assert {entry.url.split("/")[-2] for entry in found.packages} == {subdir, "noarch"}
    document = yaml.safe_load(exported(bench, "environment.yml"))
    names = {
        str(rattler.MatchSpec(text).name.normalized)
        for text in document["dependencies"]
        if isinstance(text, str)
    }
    assert names == {"python", "pip", "needs-alpha", "alpha"}
    refused = bench.run("plan", "spec.yaml", **conda.variables())
    assert refused.returncode != 0, "this is no such machine"
    assert platform in refused.stderr


def test_the_bill_of_materials_holds_what_conda_brings(
    bench: Bench, locked: dict[str, Any]
) -> None:
    text = exported(bench, "cyclonedx")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    document = json.loads(text)
    components = {one["purl"]: one for one in document["components"]}
    brought = {purl: one for purl, one in components.items() if purl.startswith("pkg:conda/")}
    assert {(one["name"], one["version"]) for one in brought.values()} == {
        (row["name"], row["version"]) for row in locked["conda"]
    }
    files = {(row["name"], row["build"]): row for row in locked["conda"]}
    for purl, one in brought.items():
        url = PackageURL.from_string(purl)
        row = files[url.name, url.qualifiers["build"]]
        assert url.to_string() == purl
        assert (url.version, url.qualifiers["channel"], url.qualifiers["subdir"]) == (
            row["version"],
            "conda-forge",
            row["subdir"],
        )
        assert {"alg": "SHA-256", "content": row["sha256"]} in one["hashes"]
    needs = {one["ref"]: one["dependsOn"] for one in document["dependencies"]}
    named = {purl: one["name"] for purl, one in components.items()}
    assert needs.keys() == {"provision:spec", *components}
    assert {named[ref] for ref in needs["provision:spec"]} == {
        "gamma",
        "ffmpeg",
        "needs-alpha",
        "python",
        "pip",
    }
    alpha, needing, gamma = (
        next(purl for purl, name in named.items() if name == word)
        for word in ("alpha", "needs-alpha", "gamma")
    )
    assert alpha in needs[needing]
    assert needs[gamma] == [alpha]  # of the index, and what it needs comes from conda
    assert exported(bench, "cyclonedx") == text


def test_the_other_formats_hold_what_the_index_brings(bench: Bench, locked: dict[str, Any]) -> None:
    text = exported(bench, "requirements")
    assert "gamma==1.0" in text
    assert "alpha==" not in text
