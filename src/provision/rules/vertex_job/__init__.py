"""Rules for custom jobs of Vertex AI."""
