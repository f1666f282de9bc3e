"""What a place becomes: templates with holes, and what of the old text they carry over."""
