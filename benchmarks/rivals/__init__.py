"""What ours is measured against, written as well as its tools allow; tested for equal answers."""
