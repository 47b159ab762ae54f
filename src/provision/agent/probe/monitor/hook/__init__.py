"""A folder that is put on a watched program's PYTHONPATH; it holds nothing but `sitecustomize`."""
