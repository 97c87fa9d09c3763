"""Who may do what, on which collections of which vault."""
