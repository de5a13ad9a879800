"""Administration: the calls of an admin client, and errands of several calls."""
