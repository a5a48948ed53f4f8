"""The files of Recallite's model `multilingual`; `recallite_models.path("multilingual")` is its manifest."""
