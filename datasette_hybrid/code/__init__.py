"""Source code over HTTP: what is asked of repositories, and the page of a file."""
