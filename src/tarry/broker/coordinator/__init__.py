"""The group coordinator: groups, their operations that wait, and the topic that keeps them."""
