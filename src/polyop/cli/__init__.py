"""The command ``polyop``: one file per verb, which parses options, calls another room and prints."""
