"""From raw text to canonical text, language, terms and passages. No keys here."""
