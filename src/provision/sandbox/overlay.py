"""Files that the sandbox's machines have in place of this host's, and what they simulate."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provision.sandbox.metadata_server import METADATA_ADDRESS, METADATA_HOSTS

JUPYTER_USER = "jupyter"
JUPYTER_UID = 61234
"""User and group id of the JupyterLab user."""
_SPECIAL = {
    "NVIDIA_TESLA_A100": "NVIDIA A100-SXM4-40GB",
    "NVIDIA_TESLA_V100": "Tesla V100-SXM2-16GB",
    "NVIDIA_RTX6000": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
}
"""Names of cards that differ from their type. Source: nvidia-smi on such cards."""
_OTHER = "Tesla P4"
_HALT = "#!/bin/sh\n: >/run/halt\n"
_FAILING = """#!/bin/bash
# The fault script-failure: the document cannot be read.
case "$*" in
*document.json*)
\techo 'curl: (22) The requested URL returned error: 503' >&2
\texit 22
\t;;
esac
exec /usr/bin/curl "$@"
"""


def write_overlay(
    folder: Path, body: Mapping[str, Any], *, wrong_gpu: bool, failing: bool
) -> list[str]:
    """Write the files again and return descriptions of what is not real."""
    shutil.rmtree(folder, ignore_errors=True)
    short = str(body.get("name", "")).rpartition("/")[2] or "sandbox"
    hosts = [
        "127.0.0.1 localhost",
        f"127.0.0.1 {short}",
        f"{METADATA_ADDRESS} {' '.join(METADATA_HOSTS)}",
    ]
    _write(folder / "etc/hosts", "\n".join(hosts) + "\n")
    _write(folder / "etc/resolv.conf", "nameserver 127.0.0.1\n")
    _write(
        folder / "etc/nsswitch.conf",
        "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n",
    )
    _write(folder / "etc/hostname", short + "\n")
    if os.geteuid() == 0:
        _add_person(folder)
    post_startup = folder / "opt/c2d/scripts/97-run-post-startup-script.sh"
    _write(post_startup, _read_script("post_startup.sh"), 0o755)
    _write(folder / "usr/local/sbin/shutdown", _HALT, 0o755)
    if failing:
        _write(folder / "usr/local/sbin/curl", _FAILING, 0o755)
    _write(folder / "usr/local/bin/uv", "")
    simulated = ["instance: an isolated root on this machine", "uv: the uv of this machine"]
    if not sys.base_prefix.startswith(("/usr", "/opt")):
        name = f"python{sys.version_info.major}.{sys.version_info.minor}"
        # Not a link: an environment created from a link searches for its library next to it.
        program = f'#!/bin/sh\nexec {shlex.quote(f"{sys.base_prefix}/bin/{name}")} "$@"\n'
        _write(folder / f"usr/local/bin/{name}", program, 0o755)
    cards = _cards(body)
    if cards:
        shown = [_OTHER] * len(cards) if wrong_gpu else cards
        _write(folder / "etc/provision-sandbox/cards", "\n".join(shown) + "\n")
        _write(folder / "usr/local/bin/nvidia-smi", _read_script("nvidia_smi.sh"), 0o755)
        simulated.append(f"gpu: nvidia-smi is simulated for {len(cards)} x {cards[0]}")
    return simulated


def _read_script(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _add_person(folder: Path) -> None:
    added = {
        "passwd": f"{JUPYTER_USER}:x:{JUPYTER_UID}:{JUPYTER_UID}::/home/{JUPYTER_USER}:/bin/bash\n",
        "group": f"{JUPYTER_USER}:x:{JUPYTER_UID}:\n",
    }
    for name, line in added.items():
        text = Path("/etc", name).read_text(encoding="utf-8", errors="replace")
        kept = [
            entry
            for entry in text.splitlines(keepends=True)
            if not entry.startswith(f"{JUPYTER_USER}:")
        ]
        _write(folder / "etc" / name, "".join(kept) + line)


def _cards(body: Mapping[str, Any]) -> list[str]:
    cards: list[str] = []
    for config in body.get("gceSetup", {}).get("acceleratorConfigs", []):
        kind = str(config.get("type", ""))
        name = _SPECIAL.get(kind, kind.replace("_TESLA_", "_").replace("_", " "))
        cards += [name] * int(config.get("coreCount", 1))
    return cards


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
