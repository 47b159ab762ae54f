"""Values as text and files, one module a format; a view decides nothing."""
