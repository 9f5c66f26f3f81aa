//! Words that dates and times are written with.

/// What a word means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Month(i64),
    Weekday,
    /// It only stands there.
    Filler,
    /// The day so many days from today.
    Day(i64),
    Now,
    Epoch,
    /// After all times, or before them.
    Infinity(bool),
    /// Midnight in UTC.
    AllBalls,
    /// The hours that follow are those after noon.
    Noon(bool),
    /// Years count backwards.
    Era(bool),
    SummerTime,
    /// What the number that follows is.
    Label(Label),
}

/// What the next number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Year,
    /// Behind a month and an hour: a minute.
    Month,
    Day,
    Hour,
    Minute,
    Second,
    JulianDay,
    /// ISO's `T`: a time.
    Time,
    /// Nothing that a number may be.
    Other,
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAYS: &[&str] = &[
    "sun",
    "sunday",
    "mon",
    "monday",
    "tue",
    "tues",
    "tuesday",
    "wed",
    "weds",
    "wednesday",
    "thu",
    "thur",
    "thurs",
    "thursday",
    "fri",
    "friday",
    "sat",
    "saturday",
];

/// The meaning of a word in lower case.
pub(super) fn meaning(word: &str) -> Option<Meaning> {
    let month = MONTHS.iter().position(|m| word == *m || word == &m[..3]);
    if let Some(at) = month {
        return Some(Meaning::Month(at as i64 + 1));
    }
    if WEEKDAYS.contains(&word) {
        return Some(Meaning::Weekday);
    }
    Some(match word {
        "sept" => Meaning::Month(9),
        "at" | "on" => Meaning::Filler,
        "yesterday" => Meaning::Day(-1),
        "today" => Meaning::Day(0),
        "tomorrow" => Meaning::Day(1),
        "now" => Meaning::Now,
        "epoch" => Meaning::Epoch,
        "infinity" | "+infinity" => Meaning::Infinity(true),
        "-infinity" => Meaning::Infinity(false),
        "allballs" => Meaning::AllBalls,
        "am" => Meaning::Noon(false),
        "pm" => Meaning::Noon(true),
        "ad" => Meaning::Era(false),
        "bc" => Meaning::Era(true),
        "dst" => Meaning::SummerTime,
        "y" => Meaning::Label(Label::Year),
        "m" => Meaning::Label(Label::Month),
        "d" => Meaning::Label(Label::Day),
        "h" => Meaning::Label(Label::Hour),
        "mm" => Meaning::Label(Label::Minute),
        "s" => Meaning::Label(Label::Second),
        "j" | "jd" | "julian" => Meaning::Label(Label::JulianDay),
        "t" => Meaning::Label(Label::Time),
        "dow" | "doy" | "isodow" | "isoyear" => Meaning::Label(Label::Other),
        _ => return None,
    })
}

/// Whether a word means something by itself; zones do not count.
pub(super) fn is_known(word: &str) -> bool {
    meaning(word).is_some()
}
