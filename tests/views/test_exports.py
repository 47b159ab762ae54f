"""Exports of locks that this version does not make, and of text that has to be escaped."""

from __future__ import annotations

import tomllib

from provision.lock import LockedEnvironment, LockedFile, LockedPackage
from provision.lock.target_view import TargetView, ViewedPackage
from provision.lock.wheels import wheel_runs_on
from provision.views.exports import cyclonedx, pylock, pyproject, requirements
from provision.views.exports.toml import to_toml_string
from tests.lock.test_lock import spec

ALPHA = LockedPackage(
    "alpha",
    "1.0",
    "pypi",
    ("linux-x86_64",),
    ("beta", "torch"),
    (LockedFile("alpha-1.0.tar.gz", "00" * 32),),
)
BETA = LockedPackage(
    "beta",
    "2.0+cu128",
    "ours",
    ("linux-x86_64",),
    (),
    (LockedFile("beta-2.0+cu128-py3-none-any.whl", "11" * 32),),
    unconfirmed=True,
)
HERE = LockedEnvironment("linux-x86_64", "linux-x86_64", None, None, None, "sha256:0")
PORTION = TargetView(
    "sha256:1",
    "3.12",
    (HERE,),
    (ViewedPackage(ALPHA, ""), ViewedPackage(BETA, "")),
    {"pypi": "", "ours": "https://a.example/simple/?x=1"},
)


def test_a_source_distribution_is_one_in_a_pylock_and_pip_is_told_to_build_it() -> None:
    urls = {
        (package.name, file.name): f"https://a.example/{file.name}"
        for package in (ALPHA, BETA)
        for file in package.files
    }
    alpha, _ = tomllib.loads(pylock.render_pylock(PORTION, urls))["packages"]
    assert alpha["sdist"] == {
        "name": "alpha-1.0.tar.gz",
        "url": "https://a.example/alpha-1.0.tar.gz",
        "hashes": {"sha256": "00" * 32},
    }
    assert "wheels" not in alpha
    assert "--only-binary :all: --no-binary alpha -r FILE" in requirements.render_requirements(
        PORTION
    )


def test_what_is_needed_but_not_held_is_no_reference_and_an_address_is_quoted() -> None:
    text = cyclonedx.render_cyclonedx(PORTION, "x", ("alpha",))
    assert "pkg:pypi/beta@2.0%2Bcu128?repository_url=https://a.example/simple/%3Fx%3D1" in text
    assert "torch" not in text
    assert '"unconfirmed"' in text


def test_what_another_package_brings_on_one_platform_is_asked_for_there_only() -> None:
    mac = LockedEnvironment("macos-arm64", "macos-arm64", None, None, None, "sha256:2")
    both = TargetView(
        "sha256:1",
        "3.12",
        (HERE, mac),
        (ViewedPackage(BETA, "sys_platform == 'linux' and platform_machine == 'x86_64'"),),
        {"ours": "https://a.example"},
    )
    document = tomllib.loads(
        pyproject.render_pyproject(both, spec("alpha", exclude_newer="2026-11-01"))
    )
    assert document["project"]["dependencies"] == [
        "alpha",
        "beta ; sys_platform == 'linux' and platform_machine == 'x86_64'",
    ]
    assert document["tool"]["uv"]["exclude-newer"] == "2026-11-01"


def test_every_character_survives_in_toml() -> None:
    value = "".join(map(chr, range(0x180))) + "\N{SNOWMAN}\U0001f600"
    assert tomllib.loads(f"a = {to_toml_string(value)}")["a"] == value


def test_files_are_for_the_platforms_in_their_names() -> None:
    names = {
        "a-1-py3-none-any.whl": {"linux-x86_64", "linux-aarch64", "macos-arm64", "windows-x86_64"},
        "a-1.tar.gz": set(),
        "a-1-cp312-cp312-manylinux_2_28_x86_64.whl": {"linux-x86_64"},
        "a-1-cp312-cp312-manylinux2014_aarch64.whl": {"linux-aarch64"},
        "a-1-cp312-cp312-macosx_11_0_universal2.whl": {"macos-arm64"},
        "a-1-cp312-cp312-win_amd64.whl": {"windows-x86_64"},
        "a-1-cp312-cp312-musllinux_1_2_x86_64.whl": set(),
        "broken.whl": set(),
    }
    platforms = ("linux-x86_64", "linux-aarch64", "macos-arm64", "windows-x86_64")
    assert {
        name: {platform for platform in platforms if wheel_runs_on(name, "3.12", platform)}
        for name in names
    } == names
