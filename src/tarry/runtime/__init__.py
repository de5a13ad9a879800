"""The operating system's side of the doors: loop, sockets, files, file workers, signals."""
