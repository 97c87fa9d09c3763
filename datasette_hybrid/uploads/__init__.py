"""Import by upload, in the background, with progress."""
