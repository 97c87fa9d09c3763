"""The SQL surface: functions, which ask for the caller's grants at each call."""
