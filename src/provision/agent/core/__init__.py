"""Functions that the programs on devices share, and the command line too."""
