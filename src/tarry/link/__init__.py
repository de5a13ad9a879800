"""Link: the end of a connection that asks.

Who asks brokers for something stands on this room: every client, and a broker that asks others.
It knows connections, versions, frames, deadlines and pauses, and nothing of what is asked.
"""
