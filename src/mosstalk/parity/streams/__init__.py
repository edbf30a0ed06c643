"""Whether requests that take turns get what each of them gets alone."""
