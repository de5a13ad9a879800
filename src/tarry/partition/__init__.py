"""A partition's replica on this broker: what is readable, who may append, who produced."""
