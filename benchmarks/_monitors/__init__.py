"""What `./dev bench monitors` is made of."""
