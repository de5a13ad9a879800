"""The group coordinator, which carries out decisions about consumer groups."""
