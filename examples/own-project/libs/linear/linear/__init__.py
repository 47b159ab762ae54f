"""A line that is fitted by gradient descent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Line:
    """A slope and an offset."""

    slope: float = 0.0
    offset: float = 0.0

    def step(self, x: np.ndarray, y: np.ndarray, rate: float) -> None:
        """Take one step down the gradient of the loss."""
        error = self.slope * x + self.offset - y
        self.slope -= rate * float(np.mean(error * x))
        self.offset -= rate * float(np.mean(error))

    def loss(self, x: np.ndarray, y: np.ndarray) -> float:
        """Return the mean squared error."""
        return float(np.mean((self.slope * x + self.offset - y) ** 2))
