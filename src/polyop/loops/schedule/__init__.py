"""What each loop becomes: threads, vector lanes, tiles, bands."""
