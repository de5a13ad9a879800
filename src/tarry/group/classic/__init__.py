"""Groups of Kafka's classic protocol: a leader among the members assigns, in rounds of all."""
