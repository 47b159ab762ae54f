"""Sends texts through a tokenizer, and rows through a dataset on disk. Exit 1 while they come back otherwise or that raises, 0 when they come back the same."""

import sys
import tempfile

CASE = {"CASE": "HERE"}
WORDS, TEXTS = ("the", "model", "learns", "to", "count", "again"), ["the model learns", "the model learns to count", "count again"]

rows, same = [[WORDS.index(word) for word in text.split()] for text in TEXTS], True
with tempfile.TemporaryDirectory() as folder:
    if CASE["texts"]:
        from tokenizers import Tokenizer
        from tokenizers.models import WordLevel
        from tokenizers.pre_tokenizers import Whitespace

        made = Tokenizer(WordLevel({word: number for number, word in enumerate((*WORDS, "[UNK]"))}, unk_token="[UNK]"))
        made.pre_tokenizer = Whitespace()
        made.save(f"{folder}/tokenizer.json")
        made = Tokenizer.from_file(f"{folder}/tokenizer.json")
        found = [made.decode(made.encode(text).ids) for text in TEXTS]
        print(f"texts that come back: {found}")
        same = same and found == TEXTS
    if CASE["rows"]:
        from datasets import Dataset, load_from_disk

        Dataset.from_dict({"input_ids": rows}).save_to_disk(f"{folder}/rows")
        back = load_from_disk(f"{folder}/rows").map(lambda row: {"length": len(row["input_ids"])}).with_format("torch")
        found = [row["input_ids"].tolist() for row in back]
        print(f"rows that come back: {found}, with lengths {[int(row['length']) for row in back]}")
        same = same and found == rows and [int(row["length"]) for row in back] == [len(row) for row in rows]
sys.exit(not same)
