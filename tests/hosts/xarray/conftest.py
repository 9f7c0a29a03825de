"""The program of the page is run by test_page.py."""

collect_ignore = ["page.py"]
