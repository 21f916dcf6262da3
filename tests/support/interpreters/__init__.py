"""Where the interpreters of the live tests come from, one module a kind of origin."""
