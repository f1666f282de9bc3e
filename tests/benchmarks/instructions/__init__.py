"""Tasks for edits by instruction: real functions, an instruction for each, and a program that judges the result."""
