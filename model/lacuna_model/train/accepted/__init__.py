"""What may be in the corpus: languages, and licences with their texts."""
