"""Settings of topics, brokers and groups: their names, values in force, and changes."""
