"""An agent's memory over months, and at size."""
