//! Where nodes are, so that what goes down together does not take two replicas of a range along.
//!
//! ```text
//!   region=eu,zone=a     from the largest to the smallest; two nodes are as close as they have
//!   region=eu,zone=b     tiers in common from the left: here 1
//! ```

use std::fmt;
use std::str::FromStr;

/// Longer ones are refused, in bytes.
const LENGTH_MAX: usize = 200;

/// See the [module's page](self). The default is nowhere: as far from each other as can be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Locality(Vec<(String, String)>);

impl Locality {
    /// How many tiers two nodes have in common, from the largest on.
    pub fn closeness(&self, other: &Locality) -> usize {
        self.0.iter().zip(&other.0).take_while(|(one, other)| one == other).count()
    }

    /// Whether nobody has said where.
    pub fn is_nowhere(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for Locality {
    type Err = String;

    /// Reads `tier=place,tier=place`; the error says what is wrong, for people.
    fn from_str(text: &str) -> Result<Locality, String> {
        if text.len() > LENGTH_MAX {
            return Err(format!("a locality has {LENGTH_MAX} bytes at most"));
        }
        let is_name = |s: &str| {
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
            !s.is_empty() && s.bytes().all(plain)
        };
        let mut tiers: Vec<(String, String)> = Vec::new();
        for tier in text.split(',').filter(|_| !text.is_empty()) {
            let pair = tier.split_once('=').filter(|(name, place)| is_name(name) && is_name(place));
            let Some((name, place)) = pair else {
                return Err(format!(
                    "\"{tier}\" is no tier of a locality: it is written region=eu,zone=a, with \
                     letters, digits, -, _ and ."
                ));
            };
            if tiers.iter().any(|(known, _)| known == name) {
                return Err(format!("the tier \"{name}\" is there twice"));
            }
            tiers.push((name.into(), place.into()));
        }
        Ok(Locality(tiers))
    }
}

impl fmt::Display for Locality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (name, place)) in self.0.iter().enumerate() {
            write!(f, "{}{name}={place}", if n > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_printed_and_what_is_none_is_refused() {
        for good in ["", "region=eu", "region=eu,zone=a-1", "rack=7.b_2"] {
            assert_eq!(good.parse::<Locality>().map(|l| l.to_string()), Ok(good.to_string()));
        }
        for bad in ["eu", "region=", "=a", "region=eu,", ",", "a=b c", "a=b,a=c", "a=\n"] {
            assert!(bad.parse::<Locality>().is_err(), "{bad}");
        }
        assert!("a=".to_string().parse::<Locality>().is_err());
        assert!(format!("a={}", "b".repeat(300)).parse::<Locality>().is_err());
    }

    #[test]
    fn two_places_are_as_close_as_they_have_tiers_in_common() {
        let close = |one: &str, other: &str| {
            let read = |text: &str| text.parse::<Locality>().expect("it is one");
            read(one).closeness(&read(other))
        };
        assert_eq!(close("region=eu,zone=a", "region=eu,zone=a"), 2);
        assert_eq!(close("region=eu,zone=a", "region=eu,zone=b"), 1);
        assert_eq!(close("region=eu,zone=a", "region=us,zone=a"), 0);
        assert_eq!(close("region=eu", ""), 0);
    }
}
