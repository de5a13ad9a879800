"""Words that every layer shares: doors, error codes, limits, settings, probes."""
