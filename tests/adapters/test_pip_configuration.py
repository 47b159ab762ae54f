"""pip's configuration as pip itself reads it: every documented place, and who wins."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from provision.adapters.uv.sources import PipConfig, home_folder, read_pip_config

# What `pip install` would use, asked of pip itself.
ASK_PIP = """
import json
from pip._internal.commands import create_command
from pip._internal.models.index import PyPI
options, _ = create_command("install").parse_args([])
index = options.index_url if options.index_url != PyPI.simple_url else ""
others = [options.extra_index_urls, options.find_links, options.proxy or "", options.cert or ""]
print(json.dumps([index, *others]))
"""
PLACES = {
    "global": "etc/pip/pip.conf",
    "legacy user": "home/.pip/pip.conf",
    "user": "home/.config/pip/pip.conf",
    "site": "prefix/pip.conf",
    "named": "named.conf",
}


def write(root: Path, place: str, text: str) -> Path:
    """Write a configuration file at one of the places below `root`."""
    path = root / PLACES.get(place, place)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def index_of(name: str) -> str:
    return f"[global]\nindex-url = https://{name.replace(' ', '-')}.example/simple\n"


def read(root: Path, **variables: str) -> PipConfig:
    environment = {"HOME": str(root / "home"), "XDG_CONFIG_DIRS": str(root / "etc"), **variables}
    return read_pip_config(environment, (str(root / "prefix"),))


@pytest.mark.skipif(
    sys.platform == "darwin", reason="macOS keeps the global and the user's file elsewhere"
)
@pytest.mark.parametrize("place", [place for place in PLACES if place != "named"])
def test_every_place_is_read(tmp_path: Path, place: str) -> None:
    write(tmp_path, place, index_of(place))
    assert read(tmp_path).index_url == f"https://{place.replace(' ', '-')}.example/simple"


@pytest.mark.skipif(
    sys.platform == "darwin", reason="macOS keeps the global and the user's file elsewhere"
)
def test_the_later_place_wins_and_variables_win_over_all(tmp_path: Path) -> None:
    for place in ("global", "legacy user", "user", "site"):
        write(tmp_path, place, index_of(place))
        assert place.replace(" ", "-") in read(tmp_path).index_url
    named = write(tmp_path, "named", index_of("named"))
    assert "named" in read(tmp_path, PIP_CONFIG_FILE=str(named)).index_url
    assert (
        read(
            tmp_path, PIP_CONFIG_FILE=str(named), PIP_INDEX_URL="https://variable.example/simple"
        ).index_url
        == "https://variable.example/simple"
    )


def test_a_named_file_that_exists_switches_the_users_own_off(tmp_path: Path) -> None:
    write(tmp_path, "legacy user", "[global]\nproxy = http://users.example:3128\n")
    named = write(tmp_path, "named", index_of("named"))
    assert read(tmp_path).proxy == "http://users.example:3128"
    assert (
        read(tmp_path, PIP_CONFIG_FILE=str(tmp_path / "nowhere.conf")).proxy
        == "http://users.example:3128"
    )
    assert read(tmp_path, PIP_CONFIG_FILE=str(named)).proxy == ""


def test_devnull_switches_all_files_off(tmp_path: Path) -> None:
    for place in PLACES:
        write(tmp_path, place, index_of(place))
    assert read(tmp_path, PIP_CONFIG_FILE=os.devnull) == PipConfig()
    assert read(tmp_path, PIP_CONFIG_FILE=os.devnull, PIP_CERT="/some/ca.pem") == PipConfig(
        cert="/some/ca.pem"
    )


@pytest.mark.parametrize(
    "content",
    [
        b"no section here\n",
        b"[global\nindex-url = x",
        b"\xff\xfe\x00binary",
        b"[global]\nindex-url\n",
        b"[global]\n[global]\n",
        b"",
    ],
)
def test_a_garbled_file_counts_as_absent(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, "legacy user", index_of("good"))
    write(tmp_path, "site", "").write_bytes(content)
    assert read(tmp_path).index_url == "https://good.example/simple"


def test_a_file_that_cannot_be_opened_counts_as_absent(tmp_path: Path) -> None:
    (tmp_path / "prefix/pip.conf").mkdir(parents=True)
    write(tmp_path, "legacy user", index_of("good"))
    assert read(tmp_path).index_url == "https://good.example/simple"


def test_lists_sections_and_spellings(tmp_path: Path) -> None:
    text = """
        [global]
        extra_index_url = https://a.example/simple
            https://b.example/simple
        find-links =
            /one/folder
            https://c.example/wheels
        proxy = http://global.example:3128
        [install]
        proxy = http://install.example:3128
        [download]
        proxy = http://download.example:3128
        """
    write(tmp_path, "site", "\n".join(line[8:] for line in text.splitlines()))
    found = read(tmp_path)
    assert found.extra_index_urls == ("https://a.example/simple", "https://b.example/simple")
    assert found.find_links == ("/one/folder", "https://c.example/wheels")
    assert found.proxy == "http://install.example:3128"


CASES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "nothing": ({}, {}),
    "two global folders": (
        {"etc/pip/pip.conf": index_of("first"), "etc2/pip/pip.conf": index_of("second")},
        {},
    ),
    "section against place": (
        {"global": "[install]\nindex-url = https://i.example/s\n", "user": index_of("user")},
        {},
    ),
    "empty install section value": (
        {"global": index_of("global"), "user": "[install]\nindex-url =\n"},
        {},
    ),
    "empty value in a later file": (
        {"global": index_of("global"), "user": "[global]\nindex-url =\n"},
        {},
    ),
    "named file": (
        {"user": index_of("user"), "named": "[global]\nproxy = http://n.example:1\n"},
        {"PIP_CONFIG_FILE": "named.conf"},
    ),
    "named file gone": ({"user": index_of("user")}, {"PIP_CONFIG_FILE": "nowhere.conf"}),
    "devnull": ({"user": index_of("user")}, {"PIP_CONFIG_FILE": os.devnull}),
    "variables": (
        {"user": index_of("user")},
        {
            "PIP_INDEX_URL": "https://v.example/s",
            "PIP_FIND_LINKS": "/a /b",
            "PIP_EXTRA_INDEX_URL": "https://x https://y",
        },
    ),
    "empty variable": ({"user": index_of("user")}, {"PIP_INDEX_URL": ""}),
    "certificates": (
        {"legacy user": "[global]\ncert = /ca.pem\n"},
        {"PIP_PROXY": "http://p.example:3128"},
    ),
}


@pytest.mark.long(after=2)
@pytest.mark.skipif(
    importlib.util.find_spec("pip") is None, reason="this interpreter has no pip to compare with"
)
@pytest.mark.skipif(
    sys.platform == "darwin", reason="macOS keeps the global file where a test may not write"
)
@pytest.mark.parametrize("case", CASES)
def test_pip_itself_answers_the_same(tmp_path: Path, case: str) -> None:
    files, variables = CASES[case]
    for place, text in files.items():
        write(tmp_path, place, text)
    (tmp_path / "home").mkdir(exist_ok=True)
    changes = {
        name: str(tmp_path / value) if name == "PIP_CONFIG_FILE" and value != os.devnull else value
        for name, value in variables.items()
    }
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "XDG_"))
    }
    environment = {
        **inherited,
        "HOME": str(tmp_path / "home"),
        "XDG_CONFIG_DIRS": f"{tmp_path / 'etc'}:{tmp_path / 'etc2'}",
        **changes,
    }
    answer = subprocess.run(
        [sys.executable, "-c", ASK_PIP],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    index, extra, links, proxy, cert = json.loads(answer.stdout)
    ours = read_pip_config(environment, (sys.prefix,))
    assert ours.index_url == index
    assert list(ours.extra_index_urls) == extra
    assert list(ours.find_links) == links
    assert ours.proxy == proxy
    assert ours.cert == (cert or "")


def test_no_home_is_no_home_folder() -> None:
    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    assert home_folder({}, nobody) is None
    assert home_folder({"HOME": ""}, nobody) is None
    assert home_folder({"HOME": "/home/jane"}, nobody) == Path("/home/jane")
    assert home_folder({}, lambda: Path("/home/jane")) == Path("/home/jane")
