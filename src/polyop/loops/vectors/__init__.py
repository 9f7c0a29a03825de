"""What vectors do: passes that fill the plan for processors, after each loop has its role."""
