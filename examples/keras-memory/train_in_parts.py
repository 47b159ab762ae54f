"""Trains the model of train.py on images that are made batch by batch."""

import sys

import keras
import numpy as np

BATCH = 32


class Images(keras.utils.PyDataset):
    """Images by the batch: only those in use are in memory."""

    def __init__(self, count: int) -> None:
        super().__init__(workers=2)
        self.count = count

    def __len__(self) -> int:
        return self.count // BATCH

    def __getitem__(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        random = np.random.default_rng(number)
        images = random.random((BATCH, 32, 32, 3), dtype=np.float32)
        return images, random.integers(0, 10, BATCH)


model = keras.Sequential(
    [
        keras.Input((32, 32, 3)),
        keras.layers.Conv2D(32, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(Images(int(sys.argv[1])), steps_per_epoch=200, verbose=2)
