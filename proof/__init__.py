"""How the sink is proved: model, guards, chaos, and each supported version. See docs/proof.md."""
