"""Reports as text, HTML and JUnit."""
