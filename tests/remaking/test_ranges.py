"""A file over HTTP ranges reads as the file itself, and fetches little."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remaking.index import PipIndex, Unreachable
from remaking.ranges import RangeFile
from remaking.wheels import Shelf
from tests.remaking.serving import Folder, fetching, served, wheel

CONTENT = os.urandom(5000)


@given(
    st.lists(
        st.tuples(st.sampled_from((0, 1, 2)), st.integers(-6000, 6000), st.integers(-1, 3000)),
        max_size=12,
    ),
    st.integers(1, 700),
    st.integers(1, 5),
)
def test_it_reads_as_the_file_itself(
    moves: list[tuple[int, int, int]], block: int, kept: int
) -> None:
    """Whatever the size of its blocks and however few it keeps."""
    plain, ranged = io.BytesIO(CONTENT), RangeFile(fetching(CONTENT), block, kept)
    for whence, offset, size in moves:
        place = max(0, offset + (0, plain.tell(), len(CONTENT))[whence])
        assert ranged.seek(offset, whence) == plain.seek(place) == ranged.tell()
        assert ranged.read(size) == plain.read(size)


def test_an_empty_file_and_one_smaller_than_a_block() -> None:
    assert RangeFile(fetching(b"")).read() == b""
    small = RangeFile(fetching(b"abc"))
    assert (small.read(), small.requests, small.received) == (b"abc", 1, 3)


def test_a_read_across_blocks_is_one_request_and_a_second_is_none() -> None:
    file = RangeFile(fetching(CONTENT), block=100)
    file.seek(150)
    assert file.read(1000) == CONTENT[150:1150]
    assert file.requests == 2
    file.seek(400)
    file.read(300)
    assert file.requests == 2
    assert file.received <= 100 + 1200


@pytest.mark.parametrize(
    "short",
    [
        lambda span: (b"x" * 10, 5000),
        lambda span: (b"x" * 100 if span.startswith("-") else b"x", 5000),
    ],
)
def test_an_answer_that_is_too_short_is_said_so(short: object) -> None:
    with pytest.raises(OSError, match="got"):
        RangeFile(short, block=100).read(50)  # type: ignore[arg-type]


def _zip64(members: int) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for number in range(members):
            archive.writestr(f"empty/{number}", b"")
        with archive.open(zipfile.ZipInfo("large/member"), "w", force_zip64=True) as member:
            member.write(b"".join(number.to_bytes(4, "big") for number in range(200_000)))
        archive.writestr("torch/version.py", "cuda = '13.2'\n", compress_type=zipfile.ZIP_DEFLATED)
    return data.getvalue()


@pytest.mark.long
@pytest.mark.thorough
def test_a_zip64_with_more_members_than_the_old_form_can_count() -> None:
    content = _zip64(66_000)
    assert b"PK\x06\x06" in content  # the end record of ZIP64
    file = RangeFile(fetching(content))
    archive = zipfile.ZipFile(file)
    assert len(archive.namelist()) == 66_002
    assert archive.read("torch/version.py") == b"cuda = '13.2'\n"
    assert archive.read("large/member")[-4:] == (199_999).to_bytes(4, "big")


ALONE = ("--isolated", "--retries", "0", "--no-cache-dir", "--index-url")
"""Options with which pip heeds no configuration but the index that follows."""


@pytest.mark.parametrize("json_pages", [False, True], ids=["html", "json"])
def test_a_member_of_a_large_wheel_costs_its_own_size(tmp_path: Path, json_pages: bool) -> None:
    """Over real HTTP, from an index of either form: the list of members, one member; the second
    time nothing.
    """
    large = {
        "pkg/large.bin": os.urandom(4 << 20),
        "pkg/middle.py": "x = 1\n",
        "pkg/other.bin": os.urandom(1 << 20),
    }
    with served(wheel("pkg", "1.0", members=large), json_pages=json_pages) as server:
        index = PipIndex((*ALONE, f"{server.address}/simple"))
        (file,) = index.wheels("pkg")
        assert file.uploaded == ("2026-10-28" if json_pages else "")
        shelf = Shelf(index, tmp_path)
        assert shelf.wheel(file).text("pkg/middle.py") == "x = 1\n"
        assert index.received < 300_000
        assert len(server.requests) <= 4
        before = len(server.requests)
        assert Shelf(index, tmp_path).wheel(file).text("pkg/middle.py") == "x = 1\n"
        assert len(server.requests) == before


def test_a_server_without_ranges_is_refused_before_the_whole_file_is_read(tmp_path: Path) -> None:
    with served(
        wheel("pkg", "1.0", members={"pkg/large.bin": os.urandom(1 << 20)}), ranges=False
    ) as server:
        index = PipIndex((*ALONE, f"{server.address}/simple"))
        (file,) = index.wheels("pkg")
        with pytest.raises(Unreachable, match="parts of files"):
            Shelf(index, tmp_path).wheel(file).metadata()
        assert index.received < 10_000


def test_a_small_file_may_come_whole(tmp_path: Path) -> None:
    with served(wheel("pkg", "1.0", head="Requires-Dist: numpy"), ranges=False) as server:
        index = PipIndex((*ALONE, f"{server.address}/simple"))
        assert (
            Shelf(index, tmp_path).wheel(index.wheels("pkg")[0]).metadata()["Requires-Dist"]
            == "numpy"
        )


def test_metadata_comes_by_itself_where_the_index_has_it(tmp_path: Path) -> None:
    made = wheel("pkg", "1.0")
    alone = {
        f"{next(iter(made))}.metadata": b"Metadata-Version: 2.1\nName: pkg\nVersion: 1.0\nRequires-Dist: numpy\n"  # noqa: E501
    }
    with served({**made, **alone}, attributes='data-core-metadata="true"') as server:
        index = PipIndex((*ALONE, f"{server.address}/simple"))
        assert (
            Shelf(index, tmp_path).wheel(index.wheels("pkg")[0]).metadata()["Requires-Dist"]
            == "numpy"
        )
        assert [path.rpartition(".")[2] for path, _ in server.requests] == [
            "/simple/pkg/",
            "metadata",
        ]


def test_find_links_and_extra_indexes_are_not_asked(tmp_path: Path) -> None:
    (tmp_path / "pkg-99.0-py3-none-any.whl").write_bytes(b"")
    with served(wheel("pkg", "99.0")) as other, served(wheel("pkg", "1.0")) as server:
        more = ("--extra-index-url", f"{other.address}/simple", "--find-links", str(tmp_path))
        assert [
            str(file.version)
            for file in PipIndex((*ALONE, f"{server.address}/simple", *more)).wheels("pkg")
        ] == ["1.0"]
        assert other.requests == []


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1/simple", None], ids=["nobody", "unknown project"]
)
def test_an_index_that_does_not_answer_is_said_so(address: str | None) -> None:
    with served({}) as server, pytest.raises(Unreachable, match="does not answer for torch"):
        PipIndex((*ALONE, address or f"{server.address}/simple")).wheels("torch")


def test_a_pip_that_may_ask_no_index_is_heeded() -> None:
    with served(wheel("pkg", "1.0")) as server, pytest.raises(Unreachable, match="no-index"):
        PipIndex((*ALONE, f"{server.address}/simple", "--no-index", "--find-links", ".")).wheels(
            "pkg"
        )


def test_a_yanked_wheel_and_a_pre_release_are_no_release(tmp_path: Path) -> None:
    with served(wheel("pkg", "1.0"), attributes='data-yanked="broken"') as server:
        assert Shelf(PipIndex((*ALONE, f"{server.address}/simple")), tmp_path).releases("pkg") == {}
    with served({**wheel("pkg", "1.0"), **wheel("pkg", "2.0rc1")}) as server:
        shelf = Shelf(PipIndex((*ALONE, f"{server.address}/simple")), tmp_path)
        assert (shelf.newest("pkg"), len(shelf.releases("pkg"))) == ("1.0", 1)


def test_a_member_too_large_to_fetch_is_refused(tmp_path: Path) -> None:
    folder = Folder(wheel("pkg", "1.0", members={"pkg/huge.bin": os.urandom((32 << 20) + 1)}))
    with pytest.raises(Unreachable, match="at most"):
        Shelf(folder, tmp_path).wheel(folder.wheels("pkg")[0]).read("pkg/huge.bin")
