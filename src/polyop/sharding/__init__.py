"""How a call is split over devices: placements, strategies, ranges, bytes. No framework is imported here."""
