"""Downloads a file of an index with uv's proxy, certificates and credentials."""

from __future__ import annotations

import errno
import hashlib
import http.client
import netrc
import re
import ssl
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlsplit

from provision.adapters.diagnostic_log import log
from provision.adapters.uv.sources import home_folder
from provision.agent.core.timed_http import (
    DEFAULT_LIMITS,
    TimedCall,
    TimedHandler,
    TimeLimits,
    TooSlow,
)
from provision.agent.install.uv_inputs import remove_credentials
from provision.effects.packages import IndexSource, SourceDistribution
from provision.errors import ExternalError, LockError, NetworkError
from provision.sanitize import redact

_MAX_BYTES = 512 * 2**20
REFUSED_CODES = (401, 403, 407)
"""HTTP status codes of missing or wrong credentials."""


def download_file(
    file: SourceDistribution,
    index: IndexSource,
    environment: Mapping[str, str],
    path: Path,
    limits: TimeLimits = DEFAULT_LIMITS,
) -> None:
    """Download a file of an index to `path`. May block for minutes. `environment` is uv's.

    Raises:
        LockError: it is too large, or has another sha256 than the index lists.
        NetworkError: the index cannot be reached, or is too slow.
    """
    address = urlsplit(file.url)
    if address.scheme not in ("https", "http", "file"):
        raise _refused_error(
            file, f"its URL does not start with https, http or file: {redact(file.url)}"
        )
    if environment.get("UV_OFFLINE") and address.scheme != "file":
        why = (
            f"{file.name}, which lists the package's requirements, was never downloaded on this "
            "machine"
        )
        raise NetworkError(
            "a required file is not in the cache, and the network is disabled",
            why=why,
            hint="run the command once with network access",
        )
    try:
        with open_url(file.url, index, environment, TimedCall(limits)) as response:
            sha256 = _write_response(file, response, path)
    except (OSError, http.client.HTTPException) as error:
        raise _download_error(file, error) from None
    if sha256 != file.sha256:
        raise LockError(
            f"{file.name} differs from the file that the index lists",
            why=f"its sha256 is {sha256}, but the index lists {file.sha256}",
            hint="try again; if it fails again, the index or a proxy is serving a damaged file",
        )


def _write_response(file: SourceDistribution, response: Any, path: Path) -> str:
    sha256 = hashlib.sha256()
    with path.open("wb") as output:
        while chunk := response.read(2**20):
            sha256.update(chunk)
            output.write(chunk)
            if output.tell() > _MAX_BYTES:
                raise _refused_error(file, f"it is larger than {_MAX_BYTES >> 20} MiB")
    return sha256.hexdigest()


def _download_error(file: SourceDistribution, error: Exception) -> ExternalError:
    reason = getattr(error, "reason", error)
    why, hint = str(reason), "check the network, the proxy and the certificates"
    if isinstance(error, urllib.error.HTTPError):
        why, hint = f"{error.code} {error.reason}", "try again later"
        if error.code in REFUSED_CODES:
            hint = "check the user name and password in pip's index-url or ~/.netrc"
    elif isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        hint = "free some space and run the command again"
        return ExternalError("the disk is full", why=str(error), hint=hint)
    elif isinstance(error, TooSlow) or isinstance(reason, TooSlow):
        hint = "try again later, or use a mirror of the index"
    what = f"{file.name} could not be downloaded"
    return NetworkError(what, why=f"{redact(file.url)}: {why}", hint=hint)


def _refused_error(file: SourceDistribution, why: str) -> LockError:
    return LockError(
        f"{file.name} could not be downloaded",
        why=why,
        hint="choose a different version, preferably one with a wheel",
    )


def open_url(
    url: str,
    index: IndexSource,
    environment: Mapping[str, str],
    call: TimedCall,
    headers: Mapping[str, str] = MappingProxyType({}),
    data: bytes | None = None,
) -> Any:
    """Open a URL with uv's proxy and certificates; `data` is sent with POST.

    Credentials of the index go to its own host only, and not along with a redirect. `call` limits
    the time of the whole response, including redirects and body.
    """
    parts = urlsplit(url)
    request = urllib.request.Request(  # noqa: S310
        remove_credentials(url), data, headers={"User-Agent": "provision", **headers}
    )
    if parts.scheme != "file" and (login := _find_credentials(url, index, environment)) is not None:
        request.add_unredirected_header(
            "Authorization", "Basic " + b64encode(":".join(login).encode()).decode()
        )
    context = ssl.create_default_context(
        cafile=environment.get("SSL_CERT_FILE") or None,
        capath=environment.get("SSL_CERT_DIR") or None,
    )
    proxies = urllib.request.ProxyHandler(_proxies(parts.hostname or "", environment))
    opener = urllib.request.build_opener(proxies, TimedHandler(call, context))
    log.info("%s %s", request.get_method(), remove_credentials(url).partition("?")[0])
    response = opener.open(request, timeout=call.limits.whole_s)
    log.debug("status %s: %s", response.status, parts.hostname)
    return response


def _proxies(host: str, environment: Mapping[str, str]) -> dict[str, str]:
    variables = {
        name.lower(): value
        for name, value in environment.items()
        if name.lower().endswith("_proxy") and value
    }
    if urllib.request.proxy_bypass_environment(host, {"no": variables.get("no_proxy", "")}):  # type: ignore[attr-defined]  # public, and in no stub
        return {}
    default = variables.get("all_proxy", "")
    proxies = {scheme: variables.get(f"{scheme}_proxy", default) for scheme in ("http", "https")}
    return {scheme: proxy for scheme, proxy in proxies.items() if proxy}


def _find_credentials(
    url: str, index: IndexSource, environment: Mapping[str, str]
) -> tuple[str, str] | None:
    """Return user name and password for a URL.

    They come from the URL, from the index if it has the same host, or from ~/.netrc.
    """
    parts, index_parts = urlsplit(url), urlsplit(index.url)
    is_index_host = index_parts.netloc.rpartition("@")[2] == parts.netloc.rpartition("@")[2]
    for candidate in (parts, index_parts) if is_index_host else (parts,):
        if candidate.username or candidate.password:
            return unquote(candidate.username or ""), unquote(candidate.password or "")
    name = "UV_INDEX_" + re.sub(r"[^A-Z0-9]", "_", index.name.upper())
    if is_index_host and f"{name}_PASSWORD" in environment:
        return environment.get(f"{name}_USERNAME", ""), environment[f"{name}_PASSWORD"]
    home = home_folder(environment)
    path = environment.get("NETRC") or (home and str(home / ".netrc"))
    try:
        login = netrc.netrc(path).authenticators(parts.hostname or "") if path else None
    except (OSError, netrc.NetrcParseError):
        return None
    return (login[0], login[2] or "") if login else None
