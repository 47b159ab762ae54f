"""The installer: installs what a lock names. Standard library only, Python 3.10 or newer."""
