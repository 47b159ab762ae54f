"""What all programs on devices and the command line share."""
