"""What the printers for C and for devices share."""
