"""The client without input and output: turns with time as an argument, the same in every run."""
