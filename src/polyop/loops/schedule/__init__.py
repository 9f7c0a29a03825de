"""Choose what each loop becomes: threads, vector lanes, register tiles, bands."""
