"""The tables of aclnn operators, one row per operator, one file per topic."""
