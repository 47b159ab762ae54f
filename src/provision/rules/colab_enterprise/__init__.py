"""Rules for Colab Enterprise targets."""
