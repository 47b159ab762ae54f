"""Requests the hub as its libraries would, step by step: name, connection, certificate, answer."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TypeVar
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from ..context import ObserverContext
from ..model import Readings
from .variables import HUB_PACKAGES, OFFLINE_VARIABLES

PATIENCE_S = 3.0
_T = TypeVar("_T")
_STEPS = {
    "name": "the name cannot be resolved",
    "connection": "no connection",
    "tls": "the certificate is not accepted",
    "answer": "no response",
}


def observe_hub(context: ObserverContext) -> Readings:
    """Return the hub's address and the step that was reached; "" if it was not requested."""
    quiet = {
        "net.hub": None,
        "net.reached": "",
        "net.status": None,
        "net.problem": None,
        "net.skew_s": None,
        "net.proxy": False,
    }
    if not any(name in context.expected.packages for name in HUB_PACKAGES) or any(
        context.expected.env.get(name) for name in OFFLINE_VARIABLES
    ):
        return quiet
    endpoint = context.environ.get("HF_ENDPOINT") or _default_endpoint()
    if endpoint is None:
        return {
            **quiet,
            "net.problem": "huggingface_hub is not installed, so the Hub's address is unknown",
        }
    address = _address(endpoint)
    if address is None:
        return {**quiet, "net.problem": "HF_ENDPOINT is not an http(s) URL", "net.reached": "name"}
    return {**quiet, **_request(address, _proxy(address, context))}


def _address(text: str) -> SplitResult | None:
    try:
        address = urlsplit(text)
        fits = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        return None
    return address if fits else None


def _default_endpoint() -> str | None:
    """Return the installed huggingface_hub's default address; read, because importing is slow."""
    for entry in sys.path:
        try:
            text = Path(entry, "huggingface_hub", "constants.py").read_text(
                encoding="utf-8", errors="replace"
            )
        except OSError:
            continue
        match = re.search(
            r"^_?(?:HF_)?DEFAULT_ENDPOINT\s*=\s*[\"'](https?://[^\"']+)", text, re.MULTILINE
        )
        return match[1] if match else None
    return None


def _proxy(address: SplitResult, context: ObserverContext) -> SplitResult | None:
    from_environ = {
        name: context.environ.get(f"{name}_proxy")
        or context.environ.get(f"{name.upper()}_PROXY")
        or ""
        for name in ("http", "https", "no")
    }
    proxies = {
        **getproxies_environment(),
        **{name: value for name, value in from_environ.items() if value},
    }
    reported = proxies.get(address.scheme) or proxies.get("all")
    if not reported or proxy_bypass(address.hostname or "", proxies):
        return None
    return _address(reported if "://" in reported else f"http://{reported}")


def _request(address: SplitResult, proxy: SplitResult | None) -> Readings:
    host, port = address.hostname or "", address.port or (443 if address.scheme == "https" else 80)
    first = (proxy.hostname or "", proxy.port or 3128) if proxy else (host, port)
    reported: Readings = {"net.hub": host, "net.proxy": proxy is not None}
    step = "name"
    try:
        _within(PATIENCE_S, lambda: socket.getaddrinfo(*first, type=socket.SOCK_STREAM))
        step = "connection"
        connection = http.client.HTTPConnection(*first, timeout=PATIENCE_S)
        if proxy and address.scheme == "https":
            connection.set_tunnel(host, port)
        _within(2 * PATIENCE_S, connection.connect)
        if address.scheme == "https":
            step = "tls"
            connection.sock = ssl.create_default_context().wrap_socket(
                connection.sock, server_hostname=host
            )
        step = "answer"
        # The connection's own timeout limits the pause between two bytes only.
        return {
            **reported,
            **_within(2 * PATIENCE_S, lambda: _answer(connection, address, bool(proxy))),
            "net.reached": step,
        }
    except (OSError, http.client.HTTPException, ValueError) as error:
        # The system's messages contain no address of this machine.
        return {**reported, "net.reached": step, "net.problem": f"{_STEPS[step]}: {_words(error)}"}


def _answer(
    connection: http.client.HTTPConnection, address: SplitResult, through_proxy: bool
) -> Readings:
    target = (
        f"{address.scheme}://{address.netloc}/"
        if through_proxy and address.scheme == "http"
        else "/"
    )
    connection.request(
        "HEAD",
        target,
        headers={"User-Agent": "provision-probe", "Host": address.netloc.rpartition("@")[2]},
    )
    sent_at = time.time()
    response = connection.getresponse()
    connection.close()
    return {
        "net.status": response.status,
        "net.skew_s": _skew(response.headers.get("Date"), sent_at),
    }


def _skew(date: str | None, now: float) -> int | None:
    """Seconds by which this clock is ahead of the server's; None if it sends no time."""
    try:
        return round(now - parsedate_to_datetime(date).timestamp()) if date else None
    except (TypeError, ValueError):
        return None


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return (
        "no response within 3 s"
        if isinstance(error, TimeoutError)
        else (getattr(error, "strerror", None) or str(error) or type(error).__name__)[:120]
    )


def _within(seconds: float, call: Callable[[], _T]) -> _T:
    """Return what `call` returns, or raise TimeoutError.

    The system's name resolution has no time limit, so it runs in a thread that may hang.
    """
    results: list[_T] = []
    raised: list[BaseException] = []

    def look() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001
            raised.append(error)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    if not results:
        raise TimeoutError
    return results[0]
