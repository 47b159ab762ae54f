"""Windows between packages: what a release uses of another package that some releases lack."""
