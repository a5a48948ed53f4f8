"""Values that every wing shares: records, filters, options, reports, and the checks of arguments."""
