"""The command `tarry`: each command a module, imported when it is called."""
