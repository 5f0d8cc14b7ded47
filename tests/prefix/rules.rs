//! One worked example for each rule.
