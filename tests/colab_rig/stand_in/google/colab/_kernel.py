"""The kernel class that Colab's launcher names."""

from google.colab import _shell
from ipykernel import ipkernel


class Kernel(ipkernel.IPythonKernel):
    """An IPython kernel with Colab's shell."""

    def _shell_class_default(self):
        return _shell.Shell
