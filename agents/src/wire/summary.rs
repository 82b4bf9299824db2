//! k6's end-of-test JSON in each of its shapes.
