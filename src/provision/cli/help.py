"""Help without broken words, and numbers within bounds, through click's public interfaces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    _NumberType = click.ParamType[float]
else:
    _NumberType = click.ParamType  # not generic before click 8.4

_NON_BREAKING_HYPHEN = "\N{NON-BREAKING HYPHEN}"


class HelpFormatter(click.HelpFormatter):
    """A formatter that never breaks a line after a hyphen, as in `--output-format`."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the usage line."""
        super().write_usage(_protect(prog), _protect(args), prefix)

    def write_text(self, text: str) -> None:
        """Write paragraphs."""
        super().write_text(_protect(text))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write a list of terms and their descriptions."""
        protected = [(term, _protect(description)) for term, description in rows]
        super().write_dl(protected, col_max, col_spacing)

    def getvalue(self) -> str:
        """Return the text that was written."""
        return super().getvalue().replace(_NON_BREAKING_HYPHEN, "-")


class HelpContext(click.Context):
    """A context whose help has no broken words."""

    formatter_class = HelpFormatter


class NumberWithin(_NumberType):
    """A number that is at least `least` and at most `most`; the help text states the bounds."""

    def __init__(
        self, number: type[int] | type[float], least: int, most: int | None = None
    ) -> None:
        self.name = "number"
        self.number, self.least, self.most = number, least, most

    def convert(
        self,
        value: str | float,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int | float:
        """Return the number; fail with the bounds."""
        try:
            number = self.number(value)
        except (ValueError, OverflowError):
            number = None
        too_large = self.most is not None and number is not None and number > self.most
        # Not a number (nan) is not at least anything.
        if number is None or not number >= self.least or too_large:
            self.fail(f"{value!r} is not {self._describe()}.", param, ctx)
        return number

    def _describe(self) -> str:
        noun = "a whole number" if self.number is int else "a number"
        if self.most is None:
            return f"{noun} that is at least {self.least}"
        return f"{noun} from {self.least} to {self.most}"


def _protect(text: str) -> str:
    return text.replace("-", _NON_BREAKING_HYPHEN)
