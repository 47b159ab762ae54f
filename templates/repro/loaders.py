"""Moves batches of 4 MiB through two DataLoader workers, started as CASE says. Exit 1 while they die or deliver wrong numbers, 0 when all arrive."""

import sys

import torch
from torch.utils.data import DataLoader

CASE = {"CASE": "HERE"}
ROWS, LENGTH = 64, 131072


class Blocks:
    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        return torch.full((LENGTH,), index, dtype=torch.int32)


def main():
    loader = DataLoader(Blocks(), batch_size=8, num_workers=2, multiprocessing_context=CASE["method"], timeout=100)
    found, wanted = sum(int(batch.long().sum()) for batch in loader), LENGTH * ROWS * (ROWS - 1) // 2
    print(f"workers by {CASE['method']}: sum {found}, wanted {wanted}")
    return found != wanted


if __name__ == "__main__":
    sys.exit(main())
