"""Effects as values, and the protocols of the system that performs them."""
