"""What a registry says about an image, from the emulated one and from servers that answer badly."""

from __future__ import annotations

import hashlib
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from provision.adapters.google.client import GoogleClient
from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.image_registry import (
    DOCKER_HUB,
    ImageReference,
    find_registry,
    read_image,
)
from provision.effects.google import ImageDescription
from provision.sandbox.image_registry import build_images
from provision.sandbox.serve import serve
from tests.adapters.cloud.stub import Reply, answering

pytest.importorskip("google.cloud.notebooks_v2")

ZERO = "sha256:" + 64 * "0"
HUB = ImageReference(DOCKER_HUB, "library/python", ZERO)
CHALLENGE = 'Bearer realm="{}/token",service="registry.docker.io",scope="repository:a/b:pull"'


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def encode(document: Any) -> tuple[str, bytes]:
    content = json.dumps(document).encode()
    return digest_of(content), content


def make_image(architecture: str, *variables: str) -> tuple[ImageReference, Reply, Reply]:
    """An image, and the replies with its manifest and its configuration."""
    config, blob = encode(
        {"os": "linux", "architecture": architecture, "config": {"Env": list(variables)}}
    )
    digest, manifest = encode({"config": {"digest": config}})
    return HUB._replace(digest=digest), Reply(body=manifest), Reply(body=blob)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (f"docker.io/library/python@{ZERO}", (DOCKER_HUB, "library/python")),
        (f"python@{ZERO}", (DOCKER_HUB, "library/python")),
        (f"python:3.12-slim@{ZERO}", (DOCKER_HUB, "library/python")),
        (f"user/image@{ZERO}", (DOCKER_HUB, "user/image")),
        (f"eu-docker.pkg.dev/p/r/a/b@{ZERO}", ("eu-docker.pkg.dev", "p/r/a/b")),
        (f"quay.io/a/b@{ZERO}", None),
        (f"localhost/a/b@{ZERO}", None),
        (f"eu-docker.pkg.dev.example.org/a/b@{ZERO}", None),
        (f"docker.io/../b@{ZERO}", None),
        (f"docker.io/a b@{ZERO}", None),
        ("python:3.12", None),
        ("python@sha256:12", None),
        ("", None),
    ],
)
def test_the_registry_follows_from_the_name(image: str, expected: tuple[str, str] | None) -> None:
    found = find_registry(image)
    assert found == (None if expected is None else ImageReference(*expected, ZERO))


def test_an_image_of_the_emulated_registry(tmp_path: Path) -> None:
    python, old = build_images()[0]["3.12"], build_images()[0]["3.9"]
    with serve(tmp_path / "sandbox") as sandbox:
        client = GoogleClient(Endpoints.from_addresses(sandbox.endpoints))
        amd64 = ("linux/amd64",)
        assert client.image(f"python@{python.digest}") == ImageDescription(amd64, "3.12.1")
        found = client.image(f"python@{python.manifests['arm64']}")
        assert found == ImageDescription(("linux/arm64",), "3.12.1")
        found = client.image(f"us-docker.pkg.dev/p/r/i@{old.digest}")
        assert found == ImageDescription(amd64, "3.9.1")
        unknown = client.image(f"python@{ZERO}").unknown
        assert "(HTTP 403): the sandbox does not know the content of this image" in unknown
        assert "Docker Hub and in Artifact Registry" in client.image(f"quay.io/a/b@{ZERO}").unknown
    # Each image is looked up once: the services are gone.
    assert client.image(f"python@{python.digest}").python == "3.12.1"


def test_a_missing_image(tmp_path: Path) -> None:
    with serve(tmp_path / "sandbox", ("no-image",)) as sandbox:
        client = GoogleClient(Endpoints.from_addresses(sandbox.endpoints))
        assert client.image(f"python@{ZERO}") == ImageDescription()


def test_a_token_for_anybody_is_requested_where_the_registry_says() -> None:
    image, manifest, config = make_image("amd64", "A=B", "PYTHON_VERSION=3.13.0")
    with answering(Reply(body={"access_token": "t0k"})) as (realm, tokens):
        refused = Reply(401, headers={"WWW-Authenticate": CHALLENGE.format(realm)})
        with answering(refused, manifest, manifest, config) as (address, asked):
            found = read_image(image, address, None, None)
    assert found == ImageDescription(("linux/amd64",), "3.13.0")
    (token,) = tokens
    assert token.query == {"service": "registry.docker.io", "scope": "repository:a/b:pull"}
    assert [request.method for request in asked] == ["HEAD", "HEAD", "GET", "GET"]
    assert [request.headers.get("Authorization") for request in asked] == [
        None,
        *3 * ["Bearer t0k"],
    ]
    assert "application/vnd.oci.image.index.v1+json" in asked[0].headers["Accept"]


def test_credentials_stay_with_their_registry() -> None:
    image, manifest, config = make_image("amd64")

    def authorize(url: str, headers: dict[str, str]) -> None:
        headers["Authorization"] = "Bearer of the user"

    with answering(config) as (elsewhere, theirs):
        moved = Reply(307, headers={"Location": f"{elsewhere}/blob?signature=1"})
        with answering(manifest, manifest, moved) as (address, asked):
            found = read_image(image, address, authorize, None)
    assert found == ImageDescription(("linux/amd64",))
    assert {request.headers["Authorization"] for request in asked} == {"Bearer of the user"}
    assert "Authorization" not in theirs[0].headers
    # Whoever refuses them gets no second request, and none goes to the address in the challenge.
    with answering() as (realm, tokens):
        refused = Reply(401, headers={"WWW-Authenticate": CHALLENGE.format(realm)})
        with answering(refused) as (address, asked):
            unknown = read_image(image, address, authorize, None).unknown
    assert unknown.endswith("refuses access (HTTP 401)")
    assert tokens == []


def test_what_a_digest_stands_for_is_read_once(tmp_path: Path) -> None:
    image, manifest, config = make_image("amd64", "PYTHON_VERSION=3.13.0")
    with answering(manifest, manifest, config) as (address, asked):
        first = read_image(image, address, None, tmp_path)
        assert read_image(image, address, None, tmp_path) == first
        assert [request.method for request in asked] == ["HEAD", "GET", "GET", "HEAD"]
    kept = next(
        path for path in tmp_path.rglob("content") if b"PYTHON_VERSION" in path.read_bytes()
    )
    kept.write_bytes(kept.read_bytes().replace(b"3.13.0", b"3.99.0"))
    with answering(manifest, config) as (address, asked):
        assert read_image(image, address, None, tmp_path) == first, "a changed entry is not used"
        assert [request.method for request in asked] == ["HEAD", "GET"]


MANIFEST = make_image("amd64")[1]
AMD64 = {"os": "linux", "architecture": "amd64"}


def image_of(document: Any) -> tuple[ImageReference, Reply]:
    digest, content = encode(document)
    return HUB._replace(digest=digest), Reply(body=content)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ([], "sent a manifest that is not a JSON object"),
        ({}, "sent a manifest that is not an image's"),
        ({"config": 1}, "sent a manifest that is not an image's"),
        ({"config": {"digest": "../../etc"}}, "names a digest that is not a sha256"),
        ({"config": {"digest": ZERO}}, f"sent content that does not have the digest {ZERO}"),
        ({"manifests": [{"platform": AMD64}]}, "sent a manifest that is not an image's"),
        ({"manifests": [{"platform": AMD64, "digest": ZERO}]}, "does not have the digest"),
        ({"manifests": 1}, "sent a manifest that is not an image's"),
    ],
)
def test_a_manifest_that_is_no_image(document: Any, why: str) -> None:
    image, manifest = image_of(document)
    with answering(manifest) as (address, _):
        assert why in read_image(image, address, None, None).unknown


@pytest.mark.parametrize(
    ("replies", "why"),
    [
        ((Reply(), Reply(body=b"other")), f"sent content that does not have the digest {ZERO}"),
        ((Reply(), Reply(404)), f"does not have {ZERO}, a part of the image"),
        (
            (Reply(429, {"errors": [{"message": "toomany\x1b[31m"}]}),),
            "does not answer now (HTTP 429): toomany\\x1b[31m",
        ),
        ((Reply(503, b"<html>"),), "does not answer now (HTTP 503)"),
        ((Reply(403, {"errors": []}),), "refuses access (HTTP 403)"),
        ((Reply(401),), "requires credentials (HTTP 401)"),
        ((Reply(401, headers={"WWW-Authenticate": "Basic realm=x"}),), "requires credentials"),
        (
            (Reply(401, headers={"WWW-Authenticate": 'Bearer realm="ftp://a/b"'}),),
            "refers to an address without TLS",
        ),
        (
            (Reply(307, headers={"Location": "http://example.org/"}),),
            "refers to an address without TLS",
        ),
        ((Reply(307, headers={"Location": "/again"}),), "redirects too often"),
        ((Reply(307, headers={"Location": "http://[::1"}),), "cannot be reached: Invalid IPv6 URL"),
        (
            (Reply(401, headers={"WWW-Authenticate": 'Bearer realm="http://[::1"'}),),
            "refers to an invalid address",
        ),
        ((Reply(drop=True),), "cannot be reached: "),
        ((Reply(), Reply(body=b"x" * (4 * 2**20 + 1))), "sent more than 4 MiB"),
    ],
)
def test_a_registry_that_does_not_describe_it(replies: tuple[Reply, ...], why: str) -> None:
    with answering(*replies) as (address, _):
        unknown = read_image(HUB, address, None, None).unknown
    assert unknown.startswith(f"{DOCKER_HUB} ")
    assert why in unknown


@pytest.mark.parametrize("body", [b"", b"[]", {"token": ""}, {"token": 1}, {"token": "a\nb"}])
def test_a_token_that_is_none(body: Any) -> None:
    with answering(Reply(body=body)) as (realm, _):
        refused = Reply(401, headers={"WWW-Authenticate": CHALLENGE.format(realm)})
        with answering(refused) as (address, _):
            assert "gave no token" in read_image(HUB, address, None, None).unknown


def test_a_registry_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    unknown = read_image(HUB, f"http://127.0.0.1:{port}", None, None).unknown
    assert f"{DOCKER_HUB} cannot be reached" in unknown


def test_texts_of_a_registry_are_harmless_and_short() -> None:
    image, manifest, config = make_image("amd\x1b[31m" + 99 * "x", "PYTHON_VERSION=\x1b" + 99 * "9")
    with answering(manifest, manifest, config) as (address, _):
        found = read_image(image, address, None, None)
    assert all(text.isprintable() and len(text) == 50 for text in (*found.platforms, found.python))


def test_platforms_without_ours() -> None:
    entry = {"platform": {"os": "windows", "architecture": "amd64"}, "digest": ZERO}
    image, index = image_of({"manifests": [entry, {"digest": ZERO}]})
    with answering(index) as (address, _):
        assert read_image(image, address, None, None) == ImageDescription(("windows/amd64",))
