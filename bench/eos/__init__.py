"""KIP-609's EOSPerformance: poll, process, produce, with partitions declared or as they come."""
