"""Models served over HTTP: the language model, and the service that embedders use too."""
