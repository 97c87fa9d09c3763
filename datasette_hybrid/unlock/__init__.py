"""Unlocking and locking in the browser, and what the user was about to do."""
