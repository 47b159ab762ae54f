"""A Vertex AI Workbench instance: made from a lock by the program that it runs at each start, and judged by the report that comes back."""
