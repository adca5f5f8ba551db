"""HTML pages of plans and runs, with pictures of clips and drawn timelines."""
