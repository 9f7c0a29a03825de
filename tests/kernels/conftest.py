"""The program of the page is run by test_function_pointer.py."""

collect_ignore = ["page.py"]
