"""Values into text, one module a format; a view decides nothing."""
