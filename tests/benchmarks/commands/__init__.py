"""The commands, one module for those that are read together; ``__main__`` lists them."""
