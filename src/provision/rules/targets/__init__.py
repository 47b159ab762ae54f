"""Rules for what a kind of target cannot do."""
