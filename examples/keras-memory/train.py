"""Trains a small convolutional model on images that are in memory as a whole."""

import sys

import keras
import numpy as np

count = int(sys.argv[1])
random = np.random.default_rng(0)
images = random.random((count, 32, 32, 3))  # float64, as NumPy's default
labels = random.integers(0, 10, count)

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
model.fit(images, labels, batch_size=32, steps_per_epoch=200, verbose=2)
