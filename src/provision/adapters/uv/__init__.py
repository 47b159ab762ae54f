"""uv: resolving, installing and reading indexes."""
