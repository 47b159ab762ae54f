"""Rules for the GPU and its precisions."""
