"""Training of the canvas side: corpus, shards, samples and the loop."""
