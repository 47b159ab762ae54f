"""Validation of documents: whatever reaches a command line is checked again on the instance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from provision.agent.core.agent_config import DocumentError, read_document
from provision.agent.workbench.document import parse_document
from tests.agent.workbench.bench import Cloud


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with Cloud(tmp_path_factory.mktemp("cloud")) as found:
        yield found


def test_a_whole_document_is_read(cloud: Cloud) -> None:
    gpu, kernel = {"type": "L4", "count": 1}, {"name": "provision-x", "title": "A title"}
    document = parse_document(
        cloud.document(
            "nonce-0001", "alpha", paths={"data": "/home/jupyter/data"}, gpu=gpu, kernel=kernel
        )
    )
    assert (document.package_count, document.gpu, document.driver_timeout_s) == (1, ("L4", 1), 900)
    assert document.variables == {
        "TOKENIZERS_PARALLELISM": "false",
        "PROVISION_PATH_DATA": "/home/jupyter/data",
    }


def changed(route: str, value: Any) -> Callable[[dict[str, Any]], None]:
    *parts, last = route.split(".")

    def change(document: dict[str, Any]) -> None:
        for part in parts:
            document = document[part]
        document[last] = value

    return change


@pytest.mark.parametrize(
    ("route", "value", "words"),
    [
        ("schema", "provision.agent.workbench/9", "the document's schema is not"),
        ("nonce", "../../etc", "nonce must be"),
        ("nonce", None, "nonce must be"),
        ("digest", "abc", "digest must be"),
        ("python", "3.11; id", "python must be"),
        ("uv", {"version": "1.0; id", "files": {}}, "uv.version must be"),
        ("uv", {"version": "1.0", "files": {"uv-1.0.whl": "md5"}}, "uv.files.uv-1.0.whl must be"),
        (
            "uv",
            {"version": "1.0", "files": {"evil-1.0.whl": "0" * 64}},
            "uv.files.evil-1.0.whl must be",
        ),
        ("system_packages", ["--allow-downgrades"], "system_packages must be"),
        ("system_packages", ["git; id"], "system_packages must be"),
        ("system_packages", "git", "system_packages must be"),
        ("env", {"A B": "x"}, "env.A B must be"),
        ("env", {"A": 1}, "env.A must be"),
        ("env", {"A": "x\0y"}, "env.A must be"),
        ("paths", {"data": "relative"}, "paths.data must be an absolute"),
        ("paths", {"data": "/home/../etc"}, "paths.data must be an absolute"),
        ("secrets", {"HF_TOKEN": "hf_literal"}, "secrets.HF_TOKEN must be"),
        (
            "secrets",
            {"HF_TOKEN": "projects/p/secrets/s/versions/../../x"},
            "secrets.HF_TOKEN must be",
        ),
        ("gpu", {"type": "L4", "count": 0}, "gpu.count must be"),
        ("gpu", {"type": "L4\nx", "count": 1}, "gpu.type must be"),
        ("kernel", {"name": "../x", "title": "t"}, "kernel.name must be"),
        ("fetch.probe", {"uri": "https://x", "sha256": "0" * 64}, "fetch.probe.uri must be"),
        ("fetch.probe.sha256", "0", "fetch.probe.sha256 must be"),
        ("report.log", "/tmp/log", "report.log must be"),
        ("install.mode", "shared", "install must be an object with mode own"),
        ("install.python", "/usr/bin/python3", "install must be an object with mode own"),
        ("install.packages", None, "install.packages must be"),
        ("expectations", None, "expectations must be"),
        ("simulated", [1], "simulated must be"),
    ],
)
def test_a_bad_document_is_refused_with_the_place(
    cloud: Cloud, route: str, value: Any, words: str
) -> None:
    document = cloud.document("nonce-0001", "alpha")
    changed(route, value)(document)
    with pytest.raises(DocumentError) as caught:
        parse_document(document)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_document_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "document.json"
    with pytest.raises(DocumentError, match="cannot read"):
        read_document(path, parse_document)
    for content in (b"{\xff", b"[" * 100_000, b"[]"):
        path.write_bytes(content)
        with pytest.raises(DocumentError):
            read_document(path, parse_document)
