"""Link: the end of a connection that sends requests.

Every client stands on this package, and so does a broker that asks other brokers.  It knows
connections, versions, frames, deadlines and pauses; it knows nothing about the requests.
"""
