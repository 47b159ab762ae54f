"""The cell's document is read strictly: whatever could reach a command line or a variable has its
form.
"""

from __future__ import annotations

from typing import Any

import pytest

from provision.agent.core.agent_config import DocumentError
from provision.agent.notebook.document import parse_document
from tests.agent.notebook.bench import NONCE, Runtime


@pytest.fixture
def good(plain: Runtime) -> dict[str, Any]:
    listed = {
        "version": "2026.07",
        "as_of": "2026-11-20",
        "python": "3.12.13",
        "torch": "2.11.0",
        "flavour": "cu128",
        "os": "Ubuntu 22.04",
        "driver": None,
    }
    gpu = {"type": "T4", "device": "Tesla T4", "count": 1}
    return plain.document(
        "alpha==1.0",
        runtime=listed,
        gpu=gpu,
        driver_min="570.26",
        env={"A": "b"},
        paths={"data": "/data"},
        secrets={"HF_TOKEN": "hf"},
        system_packages=["git"],
    )


def test_a_document_becomes_values(good: dict[str, Any]) -> None:
    document = parse_document(good)
    assert (document.shared, document.python, document.nonce) == (True, good["python"], NONCE)
    assert document.packages == {"alpha": "1.0"}
    assert document.variables == {"A": "b", "PROVISION_PATH_DATA": "/data"}
    assert document.gpu is not None
    assert document.runtime is not None
    assert (document.gpu.device, document.runtime.driver, document.driver_min) == (
        "Tesla T4",
        None,
        "570.26",
    )
    assert document.uv is not None
    assert document.uv.hashes == (64 * "0",)


def test_sizes_are_read_from_what_is_promised(good: dict[str, Any]) -> None:
    good["expectations"]["requires"]["ram_bytes"] = 17
    document = parse_document(good)
    assert (document.required_size("ram_bytes"), document.required_size("disk_bytes")) == (17, None)


@pytest.mark.parametrize(
    ("route", "value", "told"),
    [
        ("schema", "provision.agent.notebook/2", "the document's schema is not"),
        ("nonce", "short", "nonce"),
        ("nonce", NONCE[::-1], "nonce"),
        ("isolation", "none", "isolation"),
        ("python", "3.12.1", "python"),
        ("driver_min", "new", "driver_min"),
        ("gpu.count", 0, "gpu.count"),
        ("gpu.count", True, "gpu.count"),
        ("gpu.type", 4, "gpu.type"),
        ("gpu.device", "a\nb", "gpu.device"),
        ("runtime.version", None, "runtime.version"),
        ("system_packages", ["--reinstall"], "system_packages"),
        ("system_packages", "git", "system_packages"),
        ("install", None, "install"),
        ("install.mode", "own", "mode shared"),
        ("install.python", "/usr/bin/python", "without an interpreter"),
        ("install.packages", {}, "install.packages"),
        ("install.packages", [{"name": "-x", "version": "1"}], "install.packages[0]"),
        ("install.packages", [{"name": "x"}], "install.packages[0]"),
        ("predicted", None, "predicted"),
        ("predicted.changed", {"A B": "1"}, "predicted.changed"),
        ("predicted.restart", ["-r"], "predicted.restart"),
        ("protected", ["IPython Shell"], "protected"),
        ("env", {"A-B": "c"}, "env"),
        ("env", {"A": 1}, "env"),
        ("env", {"A": "\0"}, "env"),
        ("paths", {"data": "data"}, "paths.data"),
        ("paths", {"data": "/a/../b"}, "paths.data"),
        ("secrets", {"HF TOKEN": "x"}, "secrets"),
        ("secrets", {"HF_TOKEN": ""}, "secrets"),
        ("uv.version", "latest", "uv.version"),
        ("uv.files", {"evil.whl": 64 * "0"}, "uv.files"),
        ("uv.files", {"uv-1-py3-none-any.whl": "0"}, "uv.files"),
        ("expectations", [], "expectations"),
        ("expectations.python", "3.12", "python"),
        ("lock.digest", 1, "lock.digest"),
    ],
)
def test_what_has_not_its_form_is_refused_by_its_place(
    good: dict[str, Any], route: str, value: Any, told: str
) -> None:
    *above, last = route.split(".")
    block = good
    for part in above:
        block = block[part]
    block[last] = value
    with pytest.raises(DocumentError) as refused:
        parse_document(good)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_what_is_no_document_is_refused(value: Any) -> None:
    with pytest.raises(DocumentError):
        parse_document(value)
