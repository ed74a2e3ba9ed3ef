"""Topics of documents: latent Dirichlet allocation."""
