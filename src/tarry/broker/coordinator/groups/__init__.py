"""The group coordinator: decisions about consumer groups are carried out here."""
