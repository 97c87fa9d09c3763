"""Unlocking and locking in the browser, and what somebody was about to do."""
