"""The exception that ends a cell, which a notebook shows as a few lines without a traceback."""

from __future__ import annotations


class StageError(Exception):
    """A stage failed.

    `what` is one line; `why` and `hint` may be empty or have several; `outcome` goes to
    status.json.
    """

    def __init__(self, what: str, why: str = "", hint: str = "", outcome: str = "stopped") -> None:
        super().__init__(what)
        self.what, self.why, self.hint, self.outcome = what, why, hint, outcome

    def __str__(self) -> str:
        # A traceback ends with this text.
        return "\n".join([self.what, *self.lines[1:]])

    @property
    def lines(self) -> list[str]:
        """The lines that a person reads."""
        why = [f"  {line}" for line in self.why.splitlines() if line.strip()]
        hints = self.hint.splitlines()
        return [
            f"provision stopped: {self.what}",
            *why,
            *(f"help: {line}" for line in hints[:1]),
            *(f"      {line}" for line in hints[1:]),
        ]

    def _render_traceback_(self) -> list[str]:
        # IPython shows the result of this method in place of the traceback.
        return self.lines
