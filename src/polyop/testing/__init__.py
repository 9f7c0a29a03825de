"""What polyop runs on its own operators, for yours."""
