"""The JSON API's description for programs."""
