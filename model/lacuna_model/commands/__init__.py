"""What every command line of Lacuna is made of: its program, its output and the options that several share."""
