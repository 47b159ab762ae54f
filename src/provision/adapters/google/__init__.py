"""The client of Google's services; everything of Google's is imported where it is used."""
