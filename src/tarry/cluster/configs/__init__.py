"""Settings of topics, brokers and groups: what may be set, what is in force, how it changes."""
