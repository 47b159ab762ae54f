"""Terminal recordings as SVG, made from real runs of commands."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME, TerminalTheme
from rich.text import Text

COLUMNS = 92
_WHITE_BORDER = 'stroke="rgba(255,255,255,0.35)"'
BORDERS = {"light": 'stroke="#d0d7de"', "dark": _WHITE_BORDER}
"""The border of rich's window is white, which a white page hides."""
THEMES: dict[str, TerminalTheme] = {"light": DEFAULT_TERMINAL_THEME, "dark": SVG_EXPORT_THEME}
# The template of rich without its web font, which a picture in a page could not load anyway.
_SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; \
font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" \
height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def record(commands: Sequence[str], folder: Path) -> str:
    """Run commands of provision in a folder and return what a terminal shows, with ANSI colors."""
    program = str(Path(sys.executable).parent / "provision")
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment = {**kept, "LANG": "C.UTF-8", "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
    shown = []
    for command in commands:
        done = subprocess.run(
            [program, *command.split()],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        shown.append(f"\x1b[1m$ provision {command}\x1b[0m\n{done.stdout}")
    return "\n".join(shown)


def render(recording: str, theme: str) -> str:
    """Return a recording as SVG in one of `THEMES`, the same bytes for the same recording."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(
            width=COLUMNS,
            height=100,  # without one, TERM=dumb decides the width too
            record=True,
            file=nowhere,
            force_terminal=True,
            color_system="truecolor",
            no_color=False,
        )
        console.print(Text.from_ansi(recording))
        picture = console.export_svg(
            title="", theme=THEMES[theme], code_format=_SVG, unique_id="terminal"
        )
    return picture.replace(_WHITE_BORDER, BORDERS[theme])
