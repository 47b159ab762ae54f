"""One file of an index, fetched by the proxy, certificates and credentials that uv gets, and
checked against its hash.
"""

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

from provision.adapters.logs import log
from provision.adapters.uv.pip_config import home_folder
from provision.agent.core.timed_http import (
    DEFAULT_LIMITS,
    HttpHandler,
    HttpsHandler,
    TimedCall,
    TimeLimits,
    TooSlow,
)
from provision.agent.install.scratch_project import remove_credentials
from provision.effects.packages import IndexSource, SourceDistribution
from provision.errors import ExternalError, LockError, NetworkError
from provision.sanitize import redact

_LIMIT = 512 * 2**20


def download_file(
    file: SourceDistribution,
    index: IndexSource,
    environment: Mapping[str, str],
    path: Path,
    limits: TimeLimits = DEFAULT_LIMITS,
) -> None:
    """Write a file of an index to `path`. `environment` is uv's.

    Raises LockError when it is too large or has another sha256 than the index says, NetworkError
    when it is out of reach or comes too slowly.
    """
    address = urlsplit(file.url)
    if address.scheme not in ("https", "http", "file"):
        raise _refused_error(file, f"its address is neither https nor file: {redact(file.url)}")
    if environment.get("UV_OFFLINE") and address.scheme != "file":
        why = f"{file.name} was not read on this machine before, and what it needs stands in it"
        raise NetworkError(
            "something is needed that is not in the cache, and the network is switched off",
            why=why,
            hint="run once with network",
        )
    found = hashlib.sha256()
    try:
        with (
            open_url(file.url, index, environment, TimedCall(limits)) as answer,
            path.open("wb") as out,
        ):
            while chunk := answer.read(2**20):
                found.update(chunk)
                out.write(chunk)
                if out.tell() > _LIMIT:
                    raise _refused_error(file, f"it is larger than {_LIMIT >> 20} MiB")
    except urllib.error.HTTPError as error:
        hint = (
            "check user name and password in pip's index-url or ~/.netrc"
            if error.code in (401, 403, 407)
            else "try again later"
        )
        raise NetworkError(
            f"{file.name} could not be fetched",
            why=f"{redact(file.url)}: {error.code} {error.reason}",
            hint=hint,
        ) from None
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ExternalError(
                "the disk is full", why=f"{error}", hint="free some space and run the command again"
            ) from None
        slow = isinstance(error, TooSlow) or isinstance(getattr(error, "reason", None), TooSlow)
        hint = (
            "try again later, or name a mirror of the index"
            if slow
            else "check network, proxy and certificates"
        )
        raise NetworkError(
            f"{file.name} could not be fetched",
            why=f"{redact(file.url)}: {getattr(error, 'reason', error)}",
            hint=hint,
        ) from None
    if found.hexdigest() != file.sha256:
        why = f"sha256 {found.hexdigest()}, where the index says {file.sha256}"
        raise LockError(
            f"{file.name} is not the file that the index tells of",
            why=why,
            hint="try again; if it stays, the index or the way to it is damaged",
        )


def _refused_error(file: SourceDistribution, why: str) -> LockError:
    return LockError(
        f"{file.name} is not fetched",
        why=why,
        hint="choose another version, or one that has a wheel",
    )


def open_url(
    url: str,
    index: IndexSource,
    environment: Mapping[str, str],
    call: TimedCall,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Any:
    """Open an address by uv's own proxy and certificates; what opens the index goes to its own host
    only, and not along with a redirection.

    `call` limits the time of the whole answer, redirections and body included.
    """
    parts = urlsplit(url)
    request = urllib.request.Request(  # noqa: S310
        remove_credentials(url), headers={"User-Agent": "provision", **headers}
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
    opener = urllib.request.build_opener(proxies, HttpHandler(call), HttpsHandler(call, context))
    log.info("GET %s", remove_credentials(url).partition("?")[0])
    response = opener.open(request, timeout=call.limits.whole_s)
    log.debug("status %s: %s", response.status, parts.hostname)
    return response


def _proxies(host: str, environment: Mapping[str, str]) -> dict[str, str]:
    said = {
        name.lower(): value
        for name, value in environment.items()
        if name.lower().endswith("_proxy") and value
    }
    if urllib.request.proxy_bypass_environment(host, {"no": said.get("no_proxy", "")}):  # type: ignore[attr-defined]  # public, and in no stub
        return {}
    return {
        scheme: proxy
        for scheme in ("http", "https")
        if (proxy := said.get(f"{scheme}_proxy", said.get("all_proxy", "")))
    }


def _find_credentials(
    url: str, index: IndexSource, environment: Mapping[str, str]
) -> tuple[str, str] | None:
    """Return user name and password for an address: its own, those of the index where it has the
    index's host, then those of ~/.netrc.
    """
    parts, of_index = urlsplit(url), urlsplit(index.url)
    same = of_index.netloc.rpartition("@")[2] == parts.netloc.rpartition("@")[2]
    for one in (parts, *([of_index] if same else [])):
        if one.username or one.password:
            return unquote(one.username or ""), unquote(one.password or "")
    name = "UV_INDEX_" + re.sub(r"[^A-Z0-9]", "_", index.name.upper())
    if same and f"{name}_PASSWORD" in environment:
        return environment.get(f"{name}_USERNAME", ""), environment[f"{name}_PASSWORD"]
    return _netrc_credentials(parts.hostname or "", environment)


def _netrc_credentials(host: str, environment: Mapping[str, str]) -> tuple[str, str] | None:
    home = home_folder(environment)
    path = environment.get("NETRC") or (str(home / ".netrc") if home else "")
    try:
        found = netrc.netrc(path).authenticators(host) if path else None
    except (OSError, netrc.NetrcParseError):
        return None
    return (found[0], found[2] or "") if found else None
