"""Questions that a broker asks other brokers, and itself."""
