"""Learning rates."""


def warmup(step: int, peak: float, steps: int = 5) -> float:
    """Return a learning rate that rises to its peak in some steps."""
    return peak * min(1.0, (step + 1) / steps)
