"""Texts through a tokenizer and a dataset and back, both built here: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Any

from ..model import JsonObject

_WORDS = ("the", "model", "learns", "to", "count", "again")
TEXTS = ("the model learns", "the model learns to count", "count again")


def round_trip(folder: Path, packages: Container[str]) -> JsonObject:
    """Return `texts` through a saved tokenizer and `rows` through a dataset, of locked packages."""
    encoded: list[list[int]] = [[_WORDS.index(word) for word in text.split()] for text in TEXTS]
    results: JsonObject = {}
    if "tokenizers" in packages:
        tokenizer = _tokenizer(folder / "tokenizer.json")
        encoded = [tokenizer.encode(text).ids for text in TEXTS]
        results["texts"] = [tokenizer.decode(ids) for ids in encoded] == list(TEXTS)
    if "datasets" in packages:
        results["rows"] = _through_a_dataset(encoded, folder / "rows") == encoded
    return results


def _tokenizer(file: Path) -> Any:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    made = Tokenizer(
        WordLevel(
            {word: number for number, word in enumerate((*_WORDS, "[UNK]"))}, unk_token="[UNK]"
        )
    )
    made.pre_tokenizer = Whitespace()
    made.save(str(file))
    return Tokenizer.from_file(str(file))


def _through_a_dataset(encoded: list[list[int]], folder: Path) -> list[list[int]]:
    from datasets import Dataset, load_from_disk

    Dataset.from_dict({"input_ids": encoded}).save_to_disk(str(folder))
    rows = (
        load_from_disk(str(folder))
        .map(lambda row: {"length": len(row["input_ids"])})
        .with_format("torch")
    )
    return [
        row["input_ids"].tolist() for row in rows if int(row["length"]) == len(row["input_ids"])
    ]
