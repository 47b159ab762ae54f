"""Cloud Storage's JSON API, by plain HTTP."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.sandbox_rig import Clients, clients

UPLOAD = "/upload/storage/v1/b/bucket/o?uploadType=media&name="


def put(
    sandbox: Clients, name: str, content: bytes, query: str = ""
) -> tuple[int, dict[str, object]]:
    status, body, _ = sandbox.http(
        "POST", UPLOAD + quote(name, safe="") + query, content, {"Content-Type": "text/plain"}
    )
    return status, body


def path(name: str, query: str = "") -> str:
    return f"/storage/v1/b/bucket/o/{quote(name, safe='')}{query}"


def test_what_is_put_is_got(sandbox: Clients) -> None:
    content = os.urandom(100_000)
    status, about = put(sandbox, "a/b c:ü.bin", content)
    assert (
        status,
        about["name"],
        about["size"],
        about["metageneration"],
        about["contentType"],
    ) == (200, "a/b c:ü.bin", "100000", "1", "text/plain")
    assert sandbox.http("GET", path("a/b c:ü.bin"))[1] == about
    status, got, headers = sandbox.http("GET", path("a/b c:ü.bin", "?alt=media"))
    assert (status, got, headers["x-goog-generation"]) == (200, content, about["generation"])
    assert sandbox.http("GET", "/download" + path("a/b c:ü.bin"))[1] == content
    assert sandbox.http("GET", path("a/b c:ü.bin", "?alt=media"), headers={"Range": "bytes=10-19"})[
        :2
    ] == (206, content[10:20])
    assert (
        sandbox.http("GET", path("a/b c:ü.bin", "?alt=media"), headers={"Range": "bytes=100000-"})[
            0
        ]
        == 416
    )


@pytest.mark.parametrize(
    "content",
    [b"", b"\r\n\r\n--x--\r\n", b"plain", bytes(range(256))],
    ids=["empty", "like a boundary", "plain", "all bytes"],
)
def test_a_multipart_upload(sandbox: Clients, content: bytes) -> None:
    about = json.dumps({"name": "dir/file", "contentType": "application/zip"}).encode()
    body = (
        b"--xyz\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n"
        + about
        + b"\r\n--xyz\r\ncontent-type: text/html\r\n\r\n"
        + content
        + b"\r\n--xyz--"
    )
    target = "/upload/storage/v1/b/bucket/o?uploadType=multipart"
    status, made, _ = sandbox.http(
        "POST", target, body, {"Content-Type": 'multipart/related; boundary="xyz"'}
    )
    assert (status, made["name"], made["contentType"]) == (200, "dir/file", "application/zip")
    assert sandbox.http("GET", path("dir/file", "?alt=media"))[1] == content


@pytest.mark.parametrize(
    "body", [b"", b"--xyz\r\n\r\n{}\r\n--xyz--", b"--xyz\r\n\r\n{\r\n--xyz\r\n\r\nx\r\n--xyz--"]
)
def test_a_multipart_upload_that_is_none(sandbox: Clients, body: bytes) -> None:
    status, answer, _ = sandbox.http(
        "POST",
        "/upload/storage/v1/b/b-1/o?uploadType=multipart",
        body,
        {"Content-Type": "multipart/related; boundary=xyz"},
    )
    assert (status, answer["error"]["message"]) == (400, "Failed to parse multipart body")


def test_generations_grow_and_guard(sandbox: Clients) -> None:
    status, first = put(sandbox, "state", b"1", "&ifGenerationMatch=0")
    assert status == 200
    status, refused = put(sandbox, "state", b"2", "&ifGenerationMatch=0")
    assert (status, refused["error"]["errors"][0]["reason"]) == (412, "conditionNotMet")  # type: ignore[index]
    status, second = put(sandbox, "state", b"2", f"&ifGenerationMatch={first['generation']}")
    assert status == 200
    assert int(str(second["generation"])) > int(str(first["generation"]))
    assert put(sandbox, "state", b"3", f"&ifGenerationMatch={first['generation']}")[0] == 412
    assert sandbox.http("GET", path("state", f"?ifGenerationMatch={first['generation']}"))[0] == 412
    assert (
        sandbox.http("GET", path("state", f"?ifGenerationNotMatch={second['generation']}"))[0]
        == 304
    )
    assert sandbox.http("GET", path("state", f"?generation={first['generation']}"))[0] == 404
    assert sandbox.http("GET", path("state", "?ifMetagenerationMatch=2"))[0] == 412
    assert (
        sandbox.http("DELETE", path("state", f"?ifGenerationMatch={first['generation']}"))[0] == 412
    )
    assert (
        sandbox.http("DELETE", path("state", f"?ifGenerationMatch={second['generation']}"))[0]
        == 204
    )
    assert sandbox.http("DELETE", path("state"))[0] == 404
    assert put(sandbox, "state", b"4", "&ifGenerationMatch=0")[0] == 200


def test_what_is_not_there(sandbox: Clients) -> None:
    assert (
        sandbox.http("GET", path("x"))[1]["error"]["message"]
        == "The specified bucket does not exist."
    )
    put(sandbox, "y", b"")
    status, body, _ = sandbox.http("GET", path("x"))
    assert (status, body["error"]["message"]) == (404, "No such object: bucket/x")
    assert sandbox.http("GET", "/storage/v1/b/none")[0] == 404
    assert sandbox.http("GET", "/storage/v1/b/none/o")[0] == 404


def test_lists_by_prefix_delimiter_and_pages(sandbox: Clients) -> None:
    for name in ("a/1", "a/2", "a/b/3", "c"):
        put(sandbox, name, b"")

    def names(query: str) -> list[str]:
        return [
            one["name"]
            for one in sandbox.http("GET", "/storage/v1/b/bucket/o" + query)[1].get("items", [])
        ]

    assert names("") == ["a/1", "a/2", "a/b/3", "c"]
    assert names("?prefix=a/") == ["a/1", "a/2", "a/b/3"]
    assert names("?prefix=z") == []
    page = sandbox.http("GET", "/storage/v1/b/bucket/o?prefix=a/&delimiter=/")[1]
    assert page["prefixes"] == ["a/b/"]
    assert names("?prefix=a/&delimiter=/") == ["a/1", "a/2"]
    first = sandbox.http("GET", "/storage/v1/b/bucket/o?maxResults=3")[1]
    assert names(f"?maxResults=3&pageToken={first['nextPageToken']}") == ["c"]
    assert sandbox.http("GET", "/storage/v1/b/bucket/o?maxResults=x")[0] == 400


def test_buckets(sandbox: Clients) -> None:
    assert (
        sandbox.http("POST", "/storage/v1/b?project=my-project", {"name": "mine-1"})[1]["name"]
        == "mine-1"
    )
    assert sandbox.http("POST", "/storage/v1/b?project=my-project", {"name": "mine-1"})[0] == 409
    assert sandbox.http("POST", "/storage/v1/b?project=my-project", {"name": "Not"})[0] == 400
    assert (
        sandbox.http("GET", "/storage/v1/b/mine-1")[1]["iamConfiguration"]["publicAccessPrevention"]
        == "enforced"
    )


@pytest.mark.parametrize(
    "query",
    [
        "uploadType=media&name=",
        "uploadType=media&name=a%0Ab",
        "uploadType=media&name=" + "a" * 1025,
        "uploadType=resumable&name=a",
        "name=a",
    ],
)
def test_an_upload_that_is_refused(sandbox: Clients, query: str) -> None:
    assert sandbox.http("POST", f"/upload/storage/v1/b/bucket/o?{query}", b"x")[0] == 400


def test_a_hostile_name_stays_in_its_folder(tmp_path: Path) -> None:
    with clients(tmp_path / "sandbox") as sandbox:
        for name in ("../../outside", "/etc/passwd", "..", "a/../../b"):
            assert put(sandbox, name, b"x")[0] == 200
            assert sandbox.http("GET", path(name, "?alt=media"))[1] == b"x"
        assert (
            sandbox.http(
                "POST", "/upload/storage/v1/b/..%2F..%2Fx/o?uploadType=media&name=a", b"x"
            )[0]
            == 400
        )
    assert [one.name for one in tmp_path.iterdir()] == ["sandbox"]


def test_bytes_that_were_replaced_are_gone(tmp_path: Path) -> None:
    with clients(tmp_path) as sandbox:
        for content in (b"1", b"2"):
            put(sandbox, "a", content)
        assert len(list((tmp_path / "objects").iterdir())) == 1
        sandbox.http("DELETE", path("a"))
        assert list((tmp_path / "objects").iterdir()) == []
