"""A stand-in for google.colab: as the real one, it loads numpy and Pillow with the kernel and does
not import with an IPython or without packages that the
real one cannot do without.
"""

from google.colab import _reprs, _shell, files, userdata

__version__ = "0.0.1a2"
__all__ = ["files", "load_ipython_extension", "userdata"]


def load_ipython_extension(ipython):
    """Called by IPython when the kernel starts."""
    _reprs.LOADED_IN = ipython.__class__.__name__


_shell.check()
