"""Workload of the product's consumer beside two brokers with transactions and replicas in racks.

Our own broker has neither, so small peers answer as Apache Kafka does.
"""
