//! The forms of statements in `crates/cli/src/shell/forms.txt`: read, and made into statements to try.
//!
//! ```text
//!   FETCH [ direction ] { FROM | IN } cursor      a form: words, parts that may be there, choices
//!   direction: NEXT | ABSOLUTE number             what a word stands for, in this section
//!   @ cursor c                                    the same in all sections, when it is tried
//! ```
//! What follows `[, ..]` or `[..]` is nothing: they stand for the part in front of them, again.

use std::collections::BTreeMap;

/// What is told of the statements of one name.
#[derive(Debug, Default)]
pub(crate) struct Section {
    pub(crate) name: String,
    /// As they are shown.
    pub(crate) lines: Vec<String>,
    forms: Vec<Form>,
    words: BTreeMap<String, Form>,
    /// Statements that fail.
    pub(crate) failing: Vec<String>,
}

#[derive(Clone, Debug)]
enum Form {
    Word(String),
    All(Vec<Form>),
    One(Vec<Form>),
    Maybe(Box<Form>),
    Again { commas: bool },
}

/// A small generator: forms are tried in the same ways each time.
pub(crate) struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// Which optional parts are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    None,
    All,
    Some,
}

/// All sections, and what words stand for in all of them.
pub(crate) fn read(text: &str) -> (Vec<Section>, BTreeMap<String, String>) {
    let (mut sections, mut samples) = (Vec::<Section>::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("@ ") {
            let (word, sample) = rest.split_once(' ').expect("a word and what it stands for");
            samples.insert(word.to_string(), sample.to_string());
        } else if let Some(name) = line.strip_prefix("= ") {
            sections.push(Section { name: name.to_string(), ..Section::default() });
        } else if let Some(statement) = line.strip_prefix("! ") {
            let section = sections.last_mut().expect("a section");
            section.failing.push(statement.to_string());
        } else if let Some(shown) = line.strip_prefix("  ") {
            let section = sections.last_mut().expect("a section");
            section.lines.push(shown.to_string());
        }
    }
    sections.iter_mut().for_each(Section::understand);
    (sections, samples)
}

impl Section {
    fn understand(&mut self) {
        let mut whole: Vec<String> = Vec::new();
        for line in &self.lines {
            match whole.last_mut() {
                Some(last) if line.starts_with(' ') => *last = format!("{last} {}", line.trim()),
                _ => whole.push(line.clone()),
            }
        }
        for line in whole {
            let is_name = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            match line.split_once(": ").filter(|(name, _)| is_name(name)) {
                Some((name, form)) => {
                    self.words.insert(name.to_string(), parse(form));
                }
                None => self.forms.push(parse(&line)),
            }
        }
    }

    /// Statements that are made of each form: without what may be left out, with all of it, and
    /// many in between.
    pub(crate) fn tries(&self, samples: &BTreeMap<String, String>) -> Vec<String> {
        let mut out = Vec::new();
        for form in &self.forms {
            for round in 0..60 {
                let taken = match round {
                    0 => Taken::None,
                    1..4 => Taken::All,
                    _ => Taken::Some,
                };
                let mut maker =
                    Maker { section: self, samples, dice: Dice(round), taken, out: String::new() };
                maker.make(form, &mut Vec::new());
                out.push(maker.out.trim().to_string());
            }
        }
        out.sort();
        out.dedup();
        out
    }
}

struct Maker<'a> {
    section: &'a Section,
    samples: &'a BTreeMap<String, String>,
    dice: Dice,
    taken: Taken,
    out: String,
}

impl Maker<'_> {
    /// Writes a form. Choices that a part has made before are not made again.
    fn make(&mut self, form: &Form, made: &mut Vec<usize>) {
        match form {
            Form::Word(word) => match (self.section.words.get(word), self.samples.get(word)) {
                (Some(form), _) => self.make(form, made),
                (None, sample) => {
                    self.out.push_str(sample.unwrap_or(word));
                    self.out.push(' ');
                }
            },
            Form::All(parts) => self.all(parts),
            Form::One(choices) => {
                let left: Vec<usize> = (0..choices.len()).filter(|n| !made.contains(n)).collect();
                let at = match left.is_empty() {
                    true => self.dice.below(choices.len()),
                    false => left[self.dice.below(left.len())],
                };
                made.push(at);
                self.make(&choices[at], &mut Vec::new());
            }
            Form::Maybe(form) => {
                if self.takes() {
                    self.make(form, &mut Vec::new());
                }
            }
            Form::Again { .. } => {}
        }
    }

    fn takes(&mut self) -> bool {
        match self.taken {
            Taken::None => false,
            Taken::All => true,
            Taken::Some => self.dice.below(2) == 0,
        }
    }

    fn all(&mut self, parts: &[Form]) {
        let mut made = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            match part {
                Form::Again { commas } => {
                    // Another one, if there is another choice.
                    let before = &parts[at.checked_sub(1).expect("a part in front of it")];
                    if self.takes() && made.len() < self.choices(before) {
                        self.out.push_str(if *commas { ", " } else { "" });
                        self.make(before, &mut made);
                    }
                }
                part => {
                    made.clear();
                    self.make(part, &mut made);
                }
            }
        }
    }

    fn choices(&self, form: &Form) -> usize {
        match form {
            Form::One(choices) => choices.len(),
            Form::Word(word) => self.section.words.get(word).map_or(2, |form| self.choices(form)),
            _ => 2,
        }
    }
}

fn parse(text: &str) -> Form {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    words.reverse();
    let form = choices(&mut words);
    assert!(words.is_empty(), "{text}: an end too many");
    form
}

fn choices(words: &mut Vec<&str>) -> Form {
    let mut out = vec![Vec::new()];
    while let Some(word) = words.pop() {
        let form = match word {
            "|" => {
                out.push(Vec::new());
                continue;
            }
            // `[, ..]`
            "[," => {
                words.pop();
                Form::Again { commas: true }
            }
            "[..]" => Form::Again { commas: false },
            "[" => Form::Maybe(Box::new(choices(words))),
            "{" => choices(words),
            "(" => {
                let inner = choices(words);
                Form::All(vec![Form::Word("(".into()), inner, Form::Word(")".into())])
            }
            "]" | "}" | ")" => break,
            word => Form::Word(word.to_string()),
        };
        out.last_mut().expect("one").push(form);
    }
    let mut all: Vec<Form> = out.into_iter().map(Form::All).collect();
    if all.len() == 1 { all.remove(0) } else { Form::One(all) }
}

#[test]
fn forms_are_read_and_made() {
    let text =
        "@ n 7\n= A\n  A [ ( n [, ..] ) ] { b | c [..] }\n  D e\n      f\n  e: X | Y\n! a b c\n";
    let (sections, samples) = read(text);
    let tries = sections[0].tries(&samples);
    for wanted in ["A b", "A ( 7 , 7 ) b", "A c c", "D X f", "D Y f"] {
        let wanted: String = wanted.split_whitespace().collect();
        let found = |one: &String| one.split_whitespace().collect::<String>() == wanted;
        assert!(tries.iter().any(found), "{wanted}: {tries:?}");
    }
    assert_eq!(sections[0].failing, ["a b c"]);
}
