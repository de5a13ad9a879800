"""The client without input and output: turns that get the time as an argument and are
repeatable."""
