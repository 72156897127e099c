"""What the code claims beyond the two papers: one file and one picture for each claim."""
