"""Rules for Colab runtimes."""
