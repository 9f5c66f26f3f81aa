//! What an engine is asked to do: one line of text, `name key=value ..`, so that a driver in
//! another process and language takes the same lines. The answer is a line of numbers.

use std::collections::BTreeMap;

/// One step of a workload.
#[derive(Debug, Clone)]
pub struct Step {
    pub name: String,
    args: BTreeMap<String, String>,
}

impl Step {
    pub fn parse(line: &str) -> Step {
        let mut words = line.split_whitespace();
        let name = words.next().expect("a step has a name").to_string();
        let args = words
            .map(|word| {
                let (key, value) = word.split_once('=').expect("arguments are key=value");
                (key.to_string(), value.to_string())
            })
            .collect();
        Step { name, args }
    }

    pub fn text(&self, key: &str) -> &str {
        self.args.get(key).map_or("", String::as_str)
    }

    /// The same step with another value of an argument.
    pub fn with(&self, key: &str, value: &str) -> Step {
        let mut step = self.clone();
        step.args.insert(key.to_string(), value.to_string());
        step
    }

    /// A number; 0 if it was not given.
    pub fn number(&self, key: &str) -> u64 {
        let text = self.text(key);
        if text.is_empty() { 0 } else { text.parse().expect("arguments are numbers") }
    }

    /// A number; `default` if it was not given or is 0.
    pub fn number_or(&self, key: &str, default: u64) -> u64 {
        match self.number(key) {
            0 => default,
            given => given,
        }
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        for (key, value) in &self.args {
            write!(f, " {key}={value}")?;
        }
        Ok(())
    }
}

/// Measured numbers by name.
pub type Report = BTreeMap<String, f64>;

/// Reads `key=number ..`.
pub fn parse_report(line: &str) -> Report {
    line.split_whitespace()
        .filter_map(|word| {
            let (key, value) = word.split_once('=')?;
            Some((key.to_string(), value.parse().ok()?))
        })
        .collect()
}
