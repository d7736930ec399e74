"""The notes lane (seed 003): one Markdown file with front matter per note."""
