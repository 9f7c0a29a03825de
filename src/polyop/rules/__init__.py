"""Rules of operators that polyop derives or records: gradients, tangents, batches."""
