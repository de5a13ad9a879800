"""Administration: the calls of an admin client, and errands that combine several calls."""
