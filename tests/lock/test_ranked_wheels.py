"""The order of a package's wheels is that in which installers choose among them."""

from __future__ import annotations

import random

from provision.lock import LockedFile, LockedPackage
from provision.lock.wheels import glibc_of_wheel, rank_wheels

ORDER = (
    "some-1.0-cp311-cp311-manylinux_2_28_x86_64.whl",
    "some-1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "some-1.0-cp311-cp311-linux_x86_64.whl",
    "some-1.0-cp311-abi3-manylinux2014_x86_64.whl",
    "some-1.0-cp311-none-any.whl",
    "some-1.0-cp38-abi3-manylinux_2_28_x86_64.whl",
    "some-1.0-py311-none-any.whl",
    "some-1.0-py3-none-manylinux_2_27_x86_64.whl",
    "some-1.0-py3-none-any.whl",
)
OTHERS = (
    "some-1.0-cp312-cp312-manylinux_2_17_x86_64.whl",
    "some-1.0-cp311-cp311-musllinux_1_2_x86_64.whl",
    "some-1.0-cp311-cp311-manylinux_2_17_aarch64.whl",
    "some-1.0-cp311-cp311-win_amd64.whl",
)


def test_the_most_specific_abi_and_then_the_newest_glibc_come_first() -> None:
    names = [*ORDER, *OTHERS]
    random.Random(4).shuffle(names)
    files = tuple(LockedFile(name, "0" * 64) for name in names)
    package = LockedPackage("some", "1.0", "pypi", (), (), files)
    ranked = [file.name for file in rank_wheels(package, "3.11", "linux-x86_64")]
    assert ranked == list(ORDER)


def test_the_glibc_of_a_wheel_is_the_oldest_that_its_name_states() -> None:
    assert [glibc_of_wheel(name) for name in ORDER[:4]] == [(2, 28), (2, 17), None, (2, 17)]
    assert glibc_of_wheel("some-1.0-cp311-cp311-manylinux1_x86_64.whl") == (2, 5)
