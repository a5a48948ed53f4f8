"""Whether what holds stays shown: facts beside changes of other things, and true changes, of two vocabularies."""
