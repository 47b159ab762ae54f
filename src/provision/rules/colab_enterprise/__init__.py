"""Rules for Colab Enterprise runtimes."""
