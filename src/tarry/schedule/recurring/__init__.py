"""Records that come again and again: their cron expressions, terms and instances."""
