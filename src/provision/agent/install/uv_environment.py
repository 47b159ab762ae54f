"""The variables of uv: nothing else that is set on a machine decides what is installed."""

from __future__ import annotations

import re
from collections.abc import Mapping

_KEPT = re.compile(
    r"UV_(CACHE_DIR|LINK_MODE|OFFLINE|NATIVE_TLS|SYSTEM_CERTS|HTTP_TIMEOUT|HTTP_RETRIES|HTTP_CONNECT_TIMEOUT|CONCURRENT_\w+|KEYRING_PROVIDER"
    r"|INDEX_\w+_(USERNAME|PASSWORD)|PYTHON_INSTALL_DIR|PYTHON_INSTALL_MIRROR|MANAGED_PYTHON|NO_MANAGED_PYTHON)"
)
_FOREIGN = re.compile(
    r"(UV_|PIP_)|(VIRTUAL_ENV|CONDA_PREFIX|PYTHONPATH|PYTHONHOME|PYTHONDONTWRITEBYTECODE|__PYVENV_LAUNCHER__)$"
)
_DEFAULTS = {"UV_HTTP_RETRIES": "2", "UV_HTTP_CONNECT_TIMEOUT": "10"}
_FIXED = {
    "UV_NO_CONFIG": "1",
    "UV_PYTHON_DOWNLOADS": "never",
    "UV_NO_PROGRESS": "1",
    "NO_COLOR": "1",
}


def scrub_environment(
    environment: Mapping[str, str], proxy: str = "", cert: str = ""
) -> dict[str, str]:
    """Return an environment without foreign UV_* and PIP_*; cache, network and credentials stay.

    `proxy` and `cert` (pip's) count where the environment says nothing. No configuration file
    is read, and no Python is downloaded.
    """
    kept = {
        key: value
        for key, value in environment.items()
        if not _FOREIGN.match(key) or (value and _KEPT.fullmatch(key))
    }
    ours = dict(_DEFAULTS)
    if proxy:
        ours.update(
            {
                name: proxy
                for name in ("HTTP_PROXY", "HTTPS_PROXY")
                if name not in kept and name.lower() not in kept
            }
        )
    if cert and "SSL_CERT_FILE" not in kept:
        ours["SSL_CERT_FILE"] = cert
    return {**ours, **kept, **_FIXED}
