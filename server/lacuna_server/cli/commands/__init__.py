"""The subcommands of ``lacuna``, one module for each family of them."""
