"""The SQL surface: functions whose grants are handed in by whoever registers them."""
