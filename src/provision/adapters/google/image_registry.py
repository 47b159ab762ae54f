"""Reads the manifest and configuration of a container image: Docker Hub and Artifact Registry.

Sources: OCI distribution specification, Pull; https://docs.docker.com/reference/api/registry/auth/
(the token of Docker Hub); https://cloud.google.com/artifact-registry/docs/reference/docker-api (a
Google access token is the bearer token).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from provision.adapters import files
from provision.adapters.diagnostic_log import log
from provision.adapters.google.http_adapter import timeout_adapter
from provision.adapters.google.optional_import import import_optional
from provision.adapters.user_cache import mark_used
from provision.effects.google import ImageDescription
from provision.errors import ExternalError
from provision.sanitize import escape_control, redact

Headers = dict[str, str]
AuthorizeRequest = Callable[[str, Headers], None]
"""Adds the credentials of a request (address, headers) to its headers."""

PLATFORM = "linux/amd64"
"""Platform of the machines of a job."""
DOCKER_HUB = "registry-1.docker.io"
_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_ACCEPT = ", ".join((*_INDEXES, *_MANIFESTS))
_CALL_S = 15.0
_MAX_BYTES = 4 * 2**20
"""Size of a manifest that every registry accepts (OCI distribution specification)."""
_MAX_REDIRECTS = 5
_LONGEST = 50
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_REPOSITORY = re.compile(r"[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*")
_ARTIFACT_REGISTRY = re.compile(r"[a-z0-9-]+-docker\.pkg\.dev")
_CHALLENGE = re.compile(r'\b([a-z_]{1,20})="([^"]{0,1000})"')


class ImageReference(NamedTuple):
    """An image by digest: host and repository of its registry, and sha256:DIGEST."""

    host: str
    repository: str
    digest: str

    @property
    def takes_google_credentials(self) -> bool:
        """True if the registry takes the user's Google credentials."""
        return self.host != DOCKER_HUB


class RegistryUnavailable(Exception):
    """The registry does not describe the image; the text is the reason."""


def find_registry(image: str) -> ImageReference | None:
    """Return where an image is, its name completed as Docker does.

    None if it has no digest, or is in a registry that jobs cannot have images from.
    """
    name, _, digest = image.partition("@")
    host, slash, path = name.partition("/")
    if not slash or not (re.search(r"[.:]", host) or host == "localhost"):
        host, path = "docker.io", name
    path = path.partition(":")[0]
    if host == "docker.io":
        host, path = DOCKER_HUB, path if "/" in path else f"library/{path}"
    is_known = host == DOCKER_HUB or _ARTIFACT_REGISTRY.fullmatch(host)
    if not is_known or not _DIGEST.fullmatch(digest) or not _REPOSITORY.fullmatch(path):
        return None
    return ImageReference(host, path, digest)


def read_image(
    image: ImageReference,
    address: str,
    authorize: AuthorizeRequest | None,
    cache: Path | None,
) -> ImageDescription:
    """Return the description of an image in the registry at an address. May block for a minute.

    Whether the image exists is requested with HEAD, which Docker Hub does not count as a pull.
    What a digest stands for never changes, and comes from the cache if it was read before.
    """
    registry = _Registry(image, address, authorize, cache)
    try:
        if not registry.has_manifest():
            return ImageDescription()
        manifest = registry.read_json("manifests", image.digest)
        listed = [row for row in manifest.get("manifests", ()) if "platform" in row]
        if "manifests" in manifest:
            platforms = {_name_platform(row["platform"]): str(row["digest"]) for row in listed}
            if PLATFORM not in platforms:
                return ImageDescription(tuple(sorted(platforms)) or ("no platform",))
            manifest = registry.read_json("manifests", platforms[PLATFORM])
        config = registry.read_json("blobs", str(manifest["config"]["digest"]))
        variables = (config.get("config") or {}).get("Env") or ()
        named = dict(str(variable).partition("=")[::2] for variable in variables)
        python = escape_control(named.get("PYTHON_VERSION", ""))[:_LONGEST]
        return ImageDescription((_name_platform(config),), python)
    except RegistryUnavailable as error:
        return ImageDescription(unknown=f"{image.host} {error}")
    except (KeyError, TypeError, AttributeError):
        return ImageDescription(unknown=f"{image.host} sent a manifest that is not an image's")


def _name_platform(document: Mapping[str, Any]) -> str:
    """Return os/architecture of a config, or of an entry of an index (OCI image specification)."""
    return escape_control(f"{document['os']}/{document['architecture']}")[:_LONGEST]


@dataclass
class _Registry:
    """The registry of one image.

    `cache` contains manifests and configurations by their digest.
    """

    image: ImageReference
    address: str
    authorize: AuthorizeRequest | None
    cache: Path | None
    token: str = ""

    def has_manifest(self) -> bool:
        return self._request("HEAD", "manifests", self.image.digest)[0] != 404

    def read_json(self, kind: str, digest: str) -> dict[str, Any]:
        """Return a manifest or blob whose content has this digest."""
        if not _DIGEST.fullmatch(digest):
            raise RegistryUnavailable("names a digest that is not a sha256")
        content = self._read_cached(digest)
        if content is None:
            status, content = self._request("GET", kind, digest)
            if status == 404:
                raise RegistryUnavailable(f"does not have {digest}, a part of the image")
            if not _has_digest(content, digest):
                raise RegistryUnavailable(f"sent content that does not have the digest {digest}")
            self._write_cached(digest, content)
        try:
            document = json.loads(content)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise RegistryUnavailable("sent a manifest that is not a JSON object")
        return document

    def _request(self, method: str, kind: str, digest: str) -> tuple[int, bytes]:
        """Return status (200 or 404) and content; requests a token if it is needed."""
        url = f"{self.address}/v2/{self.image.repository}/{kind}/{digest}"
        headers = {"Accept": _ACCEPT}
        if self.authorize is not None:
            self.authorize(url, headers)
        elif self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        response, content = self._send(method, url, headers)
        if response.status_code == 401 and self.authorize is None and not self.token:
            self.token = self._request_token(response.headers.get("WWW-Authenticate", ""))
            return self._request(method, kind, digest)
        if response.status_code not in (200, 404):
            if method == "HEAD":  # the reason is in the body only
                return self._request("GET", kind, digest)
            raise RegistryUnavailable(_describe_refusal(response.status_code, content))
        return response.status_code, content

    def _request_token(self, challenge: str) -> str:
        """Return a token for anybody, from the address that the registry names."""
        scheme, _, rest = challenge.partition(" ")
        values = dict(_CHALLENGE.findall(rest))
        if scheme.lower() != "bearer" or not values.get("realm"):
            raise RegistryUnavailable("requires credentials (HTTP 401)")
        query = {"scope": f"repository:{self.image.repository}:pull"}
        query |= {key: values[key] for key in ("service", "scope") if key in values}
        response, content = self._send("GET", values["realm"], {}, query)
        try:
            document = json.loads(content) if response.status_code == 200 else {}
            token = document.get("token") or document.get("access_token")
        except (ValueError, AttributeError, RecursionError):
            token = None
        if not isinstance(token, str) or not re.fullmatch(r"[\x21-\x7e]+", token):
            raise RegistryUnavailable(f"gave no token (HTTP {response.status_code})")
        return token

    def _send(
        self, method: str, url: str, headers: Headers, query: Mapping[str, str] | None = None
    ) -> tuple[Any, bytes]:
        """Send a request and follow redirections; another host gets no credentials."""
        requests, is_loopback = import_optional("requests"), self.address.startswith("http:")
        with requests.Session() as session:
            session.mount("https://", timeout_adapter(_CALL_S))
            session.mount("http://", timeout_adapter(_CALL_S))
            session.trust_env = not is_loopback
            for _ in range(_MAX_REDIRECTS):
                self._require_safe(url)
                start, status = monotonic(), "no response"
                try:
                    # `auth` keeps requests from replacing the header by a password of ~/.netrc.
                    with session.request(
                        method,
                        url,
                        params=query,
                        headers=headers,
                        auth=lambda request: request,
                        timeout=_CALL_S,
                        stream=True,
                        allow_redirects=False,
                    ) as response:
                        status = str(response.status_code)
                        content = _read_bounded(response)
                except (requests.RequestException, ValueError) as error:  # a malformed Location
                    text = redact(escape_control(str(error)))[:200]
                    raise RegistryUnavailable(f"cannot be reached: {text}") from None
                finally:
                    shown = escape_control(url.partition("?")[0])
                    log.info("%s %s: %s in %.2f s", method, shown, status, monotonic() - start)
                if not response.is_redirect:
                    return response, content
                moved, query = urljoin(url, response.headers["Location"]), None
                if urlsplit(moved).netloc != urlsplit(url).netloc:
                    headers = {key: headers[key] for key in headers if key != "Authorization"}
                url = moved
        raise RegistryUnavailable("redirects too often")

    def _require_safe(self, url: str) -> None:
        own = urlsplit(self.address)
        try:
            scheme, host = urlsplit(url).scheme, urlsplit(url).hostname
        except ValueError:
            raise RegistryUnavailable("refers to an invalid address") from None
        if scheme != own.scheme or (scheme == "http" and host != own.hostname):
            raise RegistryUnavailable("refers to an address without TLS")

    def _read_cached(self, digest: str) -> bytes | None:
        if self.cache is None:
            return None
        path = self.cache / digest.partition(":")[2] / "content"
        with suppress(ExternalError, OSError):
            content = files.read(path, _MAX_BYTES)
            if _has_digest(content, digest):
                mark_used(path.parent)
                return content
        return None

    def _write_cached(self, digest: str, content: bytes) -> None:
        if self.cache is None:
            return
        path = self.cache / digest.partition(":")[2] / "content"
        try:
            files.make_folder(path.parent, 0o700)
            files.write(path, content, 0o600)
        except (ExternalError, OSError) as error:
            log.info("did not keep %s: %s", path, error)


def _read_bounded(response: Any) -> bytes:
    content = bytearray()
    for part in response.iter_content(2**16):
        content += part
        if len(content) > _MAX_BYTES:
            raise RegistryUnavailable(f"sent more than {files.format_limit(_MAX_BYTES)}")
    return bytes(content)


def _has_digest(content: bytes, digest: str) -> bool:
    return f"sha256:{hashlib.sha256(content).hexdigest()}" == digest


def _describe_refusal(status: int, content: bytes) -> str:
    """Return a refusal with the registry's text (OCI distribution specification, Error Codes)."""
    what = "refuses access" if status in (401, 403) else "does not answer now"
    try:
        text = str(json.loads(content)["errors"][0]["message"])
    except (ValueError, LookupError, TypeError, RecursionError):
        text = ""
    shown = redact(escape_control(text))[:200]
    return f"{what} (HTTP {status}){f': {shown}' if shown else ''}"
