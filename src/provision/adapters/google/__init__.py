"""The client of Google's services; Google's packages are imported on first use."""
