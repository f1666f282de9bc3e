"""What of a package is kept: licences, generated files, duplicates, texts of benchmarks."""
