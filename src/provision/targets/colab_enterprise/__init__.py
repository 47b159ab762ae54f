"""Runtime templates of Colab Enterprise."""
