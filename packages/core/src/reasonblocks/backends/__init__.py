"""What implements the ports. None of these modules knows another, but a store its embedder."""
