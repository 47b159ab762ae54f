"""Loads numpy and Pillow, which therefore are in every kernel from its start on."""

import numpy as np
import PIL.Image

LOADED_IN = ""
LOADED = (np.__version__, PIL.__version__)
