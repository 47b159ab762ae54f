"""Sizes of a model in a folder of the project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from provision.adapters import RealSystem
from provision.source.loader import read_spec_file, validate_source
from provision.source.model_config import MAX_CONFIG_BYTES

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}
SPEC = 'gpu: none\npython: "3.12"\npackages: []\ntraining: {model: MODEL}\n'


def model_of(folder: Path, model: str) -> tuple[dict[str, Any], list[str]]:
    """Return the model of a valid spec, and the messages about it."""
    path = folder / "spec.yaml"
    path.write_text(SPEC.replace("MODEL", model), encoding="utf-8")
    (source,) = read_spec_file(path, RealSystem())
    spec, problems = validate_source(source)
    messages = [finding.message for finding in (*source.diagnostics, *problems)]
    if spec is None or spec.training.model is None:
        return {}, messages
    return spec.training.model.model_dump(), messages


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "work/model").mkdir(parents=True)
    (tmp_path / "work/provision.toml").touch()
    (tmp_path / "work/model/config.json").write_text(json.dumps(LLAMA))
    return tmp_path / "work"


@pytest.mark.parametrize("name", ["./model", "model", "./model/"])
def test_a_folder_gives_the_sizes(project: Path, name: str) -> None:
    model, messages = model_of(project, f"{{id: {name}}}")
    assert messages == []
    sizes = {"parameters": "8030261.248K", "hidden_size": 4096, "layers": 32}
    assert model == {"id": name, **sizes}


def test_a_declared_size_takes_precedence(project: Path) -> None:
    model, _ = model_of(project, "{id: ./model, parameters: 7B}")
    assert (model["parameters"], model["layers"]) == ("7B", 32)


def test_an_unknown_type_gives_its_width_and_layers(project: Path) -> None:
    (project / "model/config.json").write_text(json.dumps({**LLAMA, "model_type": "own"}))
    model, messages = model_of(project, "{id: ./model}")
    assert (model["parameters"], model["hidden_size"], messages) == (None, 4096, [])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[]", "is not a JSON object"),
        ("{", "is not a JSON object"),
        ("[" * 100_000, "is not a JSON object"),
        (" " * (MAX_CONFIG_BYTES + 1), "cannot be read"),
    ],
)
def test_a_file_that_is_no_config_is_refused(project: Path, content: str, words: str) -> None:
    (project / "model/config.json").write_text(content)
    _, (message,) = model_of(project, "{id: ./model}")
    assert words in message


def test_sizes_that_are_no_numbers_are_not_used(project: Path) -> None:
    broken = {**LLAMA, "hidden_size": -1, "num_hidden_layers": True, "vocab_size": 10**30}
    (project / "model/config.json").write_text(json.dumps(broken))
    model, messages = model_of(project, "{id: ./model}")
    assert messages == []
    assert (model["parameters"], model["hidden_size"], model["layers"]) == (None, None, None)


def test_a_folder_outside_the_project_is_refused(project: Path) -> None:
    (project.parent / "config.json").write_text(json.dumps(LLAMA))
    (project / "link").symlink_to(project.parent)
    for name in ("../work/..", "./link", "link"):
        _, messages = model_of(project, f"{{id: {name}}}")
        assert any("is outside the project" in message for message in messages), name


def test_a_folder_without_a_config_is_named(project: Path) -> None:
    _, messages = model_of(project, "{id: ./nowhere}")
    assert "nowhere/config.json cannot be read" in messages[0]
    assert model_of(project, "{id: our/own}")[1] == []
