"""How the sink is proved: model, guards, chaos, each supported version. See docs/internals."""
