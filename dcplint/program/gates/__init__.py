"""How code gets to the gates that ask whether a backend does DCP, and past them."""
