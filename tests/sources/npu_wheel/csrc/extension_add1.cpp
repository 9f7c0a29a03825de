// The document lists this file and prints nothing of it.
