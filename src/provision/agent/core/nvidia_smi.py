"""Queries of nvidia-smi: its path, its arguments, and the rows of its output."""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Mapping, Sequence

_USUAL_PATHS = ("/opt/bin/nvidia-smi", "/usr/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi")
"""Its paths on images whose PATH lacks it: Colab, Debian, Container-Optimized OS."""


def find_nvidia_smi(environ: Mapping[str, str]) -> str | None:
    """Return nvidia-smi from PATH, else from the usual folders of images."""
    on_path = shutil.which("nvidia-smi", path=environ.get("PATH"))
    return on_path or next((path for path in _USUAL_PATHS if os.access(path, os.X_OK)), None)


def query_arguments(fields: Sequence[str], subject: str = "gpu") -> list[str]:
    """Return the arguments that print these fields of each GPU, or of each of another subject."""
    return [f"--query-{subject}={','.join(fields)}", "--format=csv,noheader,nounits"]


def parse_rows(output: str, fields: Sequence[str]) -> list[dict[str, str]]:
    """Return the rows of a query by field; lines with another number of cells are skipped."""
    return [
        dict(zip(fields, (cell.strip() for cell in row), strict=True))
        for row in csv.reader(output.splitlines(), skipinitialspace=True)
        if len(row) == len(fields)
    ]
