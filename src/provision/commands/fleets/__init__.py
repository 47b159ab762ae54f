"""Commands for many targets at once: those of a spec, or of all specs in a folder."""
