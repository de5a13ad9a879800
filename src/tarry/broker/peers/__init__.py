"""Peers: how a broker asks other brokers and itself."""
