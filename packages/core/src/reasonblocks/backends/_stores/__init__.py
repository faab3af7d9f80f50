"""What the stores share, and none of them is: how texts become vectors, and how patterns in memory are searched."""
