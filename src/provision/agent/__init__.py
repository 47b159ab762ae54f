"""Code that runs on devices: standard library only, Python 3.10 or newer."""
