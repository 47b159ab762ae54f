"""Where locked files can be fetched from: what one target may hold, asked of the real uv."""

from __future__ import annotations

import hashlib
from pathlib import Path

from provision.adapters import RealSystem
from provision.facts import load_facts
from provision.lock import LockedEnvironment, LockedFile, LockedPackage
from provision.lock.file_urls import resolve_file_urls
from provision.lock.target_view import TargetView, ViewedPackage
from tests.rig import MINOR, TAG, Bench, make_index, make_wheel

LINUX = LockedEnvironment("linux-x86_64", "linux-x86_64", None, None, None, "sha256:0")
MAC = LockedEnvironment("macos-arm64", "macos-arm64", None, None, None, "sha256:1")
MARKERS = (
    "sys_platform == 'linux' and platform_machine == 'x86_64'",
    "sys_platform == 'darwin' and platform_machine == 'arm64'",
)


def test_two_builds_of_a_package_on_one_index_are_found(bench: Bench, tmp_path: Path) -> None:
    """As PyTorch's indexes have it: a label for one platform's build, and none for another's."""
    wheels = tuple(
        make_wheel(tmp_path / "w", "native", version, tag=f"{TAG}-{TAG}-{place}")
        for version, place in (("1.0+cpu", "manylinux_2_28_x86_64"), ("1.0", "macosx_14_0_arm64"))
    )
    url = make_index(tmp_path / "ours", wheels)
    held = tuple(
        ViewedPackage(
            LockedPackage(
                "native",
                version,
                "ours",
                (environment.key,),
                (),
                (LockedFile(wheel.name, hashlib.sha256(wheel.read_bytes()).hexdigest()),),
            ),
            marker,
        )
        for version, environment, wheel, marker in zip(
            ("1.0+cpu", "1.0"), (LINUX, MAC), wheels, MARKERS, strict=True
        )
    )
    portion = TargetView("sha256:2", MINOR, (LINUX, MAC), held, {"ours": url})
    found = resolve_file_urls(
        portion, load_facts(), RealSystem(bench.environment()), lambda _: None
    )
    assert found == {
        ("native", wheel.name): f"{url}/native/{wheel.name.replace('+', '%2B')}" for wheel in wheels
    }
