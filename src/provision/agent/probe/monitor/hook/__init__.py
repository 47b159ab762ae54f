"""A folder that is put on a watched program's PYTHONPATH; it contains only `sitecustomize`."""
