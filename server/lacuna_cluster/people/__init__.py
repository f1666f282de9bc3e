"""The users of a cluster: who they are, what they may do, and what they have used."""
