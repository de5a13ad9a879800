"""A seeded world for the broker: disk, network, workload and checkers; a public test kit."""

from tarry.simulation.disk import SimulatedDisk

__all__ = ["SimulatedDisk"]
