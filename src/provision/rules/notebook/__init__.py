"""Rules about notebooks: what their cells install, import, call and contain."""
