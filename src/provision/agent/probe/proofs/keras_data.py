"""Data of the proof with Keras: one by one, by workers of a PyDataset, and by tf.data."""

from __future__ import annotations

import threading
from typing import Any

from .frameworks import BATCH

SIDE, CLASSES, EXAMPLES = 16, 4, 104
"""Pixels of a side, quarters of a picture, and different pictures: 13 batches."""
_PATIENCE_S = 10


class WorkerMeeting:
    """Notices whether two threads make batches at the same time: the first waits for another."""

    def __init__(self) -> None:
        self._came, self._waiting = set[int](), 0
        self._lock, self._met = threading.Lock(), threading.Event()

    @property
    def has_happened(self) -> bool:
        """Return whether two threads have met."""
        return self._met.is_set()

    def arrive(self) -> None:
        """Wait for a second thread, once in each thread but the main one."""
        # In the main thread, Keras makes two batches to learn their shapes.
        thread = threading.get_ident()
        if threading.current_thread() is threading.main_thread() or thread in self._came:
            return
        with self._lock:
            self._came.add(thread)
            self._waiting += 1
            if self._waiting > 1:
                self._met.set()
        self._met.wait(_PATIENCE_S)
        with self._lock:
            self._waiting -= 1


def make_dataset(
    first: int, last: int, workers: int = 1, meeting: WorkerMeeting | None = None
) -> Any:
    """Return a PyDataset with the batches of some steps; 1 worker makes them one by one."""
    import keras

    class Pictures(keras.utils.PyDataset):  # type: ignore[misc]
        """Noise with a bright patch in one quarter, which is the label."""

        def __len__(self) -> int:
            return last - first

        def __getitem__(self, index: int) -> tuple[Any, Any]:
            if meeting is not None:
                meeting.arrive()
            return examples_of((first + index) * BATCH, BATCH)

    return Pictures(workers=workers, use_multiprocessing=False)


def make_pipeline(first: int, last: int) -> Any:
    """Return a tf.data pipeline with the batches of some steps.

    It repeats, batches, maps in parallel and prefetches.
    """
    from tensorflow.data import Dataset

    pictures, quarters = examples_of(0, EXAMPLES)
    # The pictures are stored at twice their brightness, so that without the map training differs.
    batches = Dataset.from_tensor_slices((pictures * 2, quarters)).repeat().batch(BATCH)
    batches = batches.skip(first).take(last - first)
    halved = batches.map(lambda both, quarter: (both / 2, quarter), num_parallel_calls=2)
    return halved.prefetch(2)


def examples_of(first: int, count: int) -> tuple[Any, Any]:
    """Return some pictures and the quarters with their bright patch."""
    import numpy

    pictures, quarters = [], []
    for number in range(first, first + count):
        draw = numpy.random.default_rng(number % EXAMPLES)
        picture, quarter = draw.normal(0, 0.3, (SIDE, SIDE, 1)), number % CLASSES
        row, column = divmod(quarter, 2)
        half = SIDE // 2
        picture[row * half : (row + 1) * half, column * half : (column + 1) * half] += 1
        pictures.append(picture.astype("float32"))
        quarters.append(quarter)
    return numpy.stack(pictures), numpy.array(quarters)
