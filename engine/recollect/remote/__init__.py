"""Models served over HTTP in the manner of OpenAI: where one is, and how it is asked. Nothing here is used unasked."""
