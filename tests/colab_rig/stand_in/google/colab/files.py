"""Downloads to the browser: in the stand-in, a line in the file that COLAB_RIG_DOWNLOADS names, and
the script that a front end would run.
"""

import os
from pathlib import Path

from IPython.display import Javascript, display


def download(filename):
    """Offer a file to the browser."""
    if not Path(filename).exists():
        raise FileNotFoundError(f"Cannot find file: {filename}")
    with Path(os.environ["COLAB_RIG_DOWNLOADS"]).open("a", encoding="utf-8") as noted:
        noted.write(f"{Path(filename).absolute()}\n")
    display(Javascript("/* download */"))
