"""Jobs: what is done over archives, topics and the event log when somebody asks for it."""
