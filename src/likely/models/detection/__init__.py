"""Object detection: what is where in an image, how probable it is, and how sure each edge is."""
