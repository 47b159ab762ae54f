"""Moves batches through DataLoader workers, started as CASE says. Exit 1 while they die or deliver wrong numbers, 0 when all arrive."""

import sys

import torch
from torch.utils.data import DataLoader

CASE = {"CASE": "HERE"}
ROWS, LENGTH = CASE["rows"], CASE["length"]


class Blocks:
    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        return torch.full((LENGTH,), index + 1, dtype=torch.int32)


def main():
    loader = DataLoader(Blocks(), batch_size=CASE["batch"], num_workers=CASE["workers"], multiprocessing_context=CASE["method"], timeout=100)
    found, wanted = sum(int(batch.long().sum()) for batch in loader), LENGTH * ROWS * (ROWS + 1) // 2
    print(f"batches of {4 * LENGTH * CASE['batch']:,} bytes, workers by {CASE['method']}: sum {found}, wanted {wanted}")
    return found != wanted


if __name__ == "__main__":
    sys.exit(main())
