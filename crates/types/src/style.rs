//! How values look as text: the settings `TimeZone`, `DateStyle`, `IntervalStyle`,
//! `extra_float_digits` and `bytea_output`.

use crate::TimeZone;

/// The form of dates and timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DateForm {
    /// `2024-02-29 12:34:56+01`
    #[default]
    Iso,
    /// `02/29/2024 12:34:56 CET`
    Sql,
    /// `Thu Feb 29 12:34:56 2024 CET`
    Postgres,
    /// `29.02.2024 12:34:56 CET`
    German,
}

/// The order of year, month and day where digits alone do not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DateOrder {
    /// Month first.
    #[default]
    Mdy,
    /// Day first.
    Dmy,
    /// Year first.
    Ymd,
}

/// The form of intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum IntervalForm {
    /// `1 year 2 mons 3 days 04:05:06`
    #[default]
    Postgres,
    /// `@ 1 year 2 mons 3 days 4 hours 5 mins 6 secs`
    Verbose,
    /// `+1-2 +3 +4:05:06`
    Sql,
    /// `P1Y2M3DT4H5M6S`
    Iso,
}

/// See the [module documentation](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Where `timestamptz` values are shown and read.
    pub zone: TimeZone,
    /// Form of dates.
    pub date: DateForm,
    /// Order of date fields.
    pub order: DateOrder,
    /// Form of intervals.
    pub interval: IntervalForm,
    /// `extra_float_digits`: above 0 the shortest exact form.
    pub float_digits: i8,
    /// `bytea_output = escape`.
    pub bytea_escape: bool,
    /// What `now` and `today` mean where they are read: microseconds since 2000-01-01 UTC.
    pub now: i64,
}

impl Style {
    /// PostgreSQL's defaults in this zone.
    pub const fn iso(zone: TimeZone) -> Style {
        Style {
            zone,
            date: DateForm::Iso,
            order: DateOrder::Mdy,
            interval: IntervalForm::Postgres,
            float_digits: 1,
            bytea_escape: false,
            now: 0,
        }
    }

    /// The defaults in UTC.
    pub fn utc() -> Style {
        Style::iso(TimeZone::utc())
    }

    /// Reads `DateStyle`: form and order in any order, each may be missing.
    pub fn parse_dates(
        text: &str,
        form: DateForm,
        order: DateOrder,
    ) -> Option<(DateForm, DateOrder)> {
        let (mut form, mut order, mut ordered) = (form, order, false);
        for word in text.split(',').map(|w| w.trim().to_ascii_lowercase()) {
            match word.as_str() {
                "iso" => form = DateForm::Iso,
                "sql" => form = DateForm::Sql,
                w if w.starts_with("postgres") => form = DateForm::Postgres,
                w if w.starts_with("german") => {
                    form = DateForm::German;
                    // German dates begin with the day unless an order is given.
                    if !ordered {
                        order = DateOrder::Dmy;
                    }
                }
                "ymd" => (order, ordered) = (DateOrder::Ymd, true),
                w if w == "dmy" || w.starts_with("euro") => {
                    (order, ordered) = (DateOrder::Dmy, true);
                }
                w if w == "mdy" || w == "us" || w.starts_with("noneuro") => {
                    (order, ordered) = (DateOrder::Mdy, true);
                }
                "default" => (form, order) = (DateForm::Iso, DateOrder::Mdy),
                _ => return None,
            }
        }
        Some((form, order))
    }

    /// `DateStyle` as SHOW prints it.
    pub fn dates_text(form: DateForm, order: DateOrder) -> &'static str {
        match (form, order) {
            (DateForm::Iso, DateOrder::Mdy) => "ISO, MDY",
            (DateForm::Iso, DateOrder::Dmy) => "ISO, DMY",
            (DateForm::Iso, DateOrder::Ymd) => "ISO, YMD",
            (DateForm::Sql, DateOrder::Mdy) => "SQL, MDY",
            (DateForm::Sql, DateOrder::Dmy) => "SQL, DMY",
            (DateForm::Sql, DateOrder::Ymd) => "SQL, YMD",
            (DateForm::Postgres, DateOrder::Mdy) => "Postgres, MDY",
            (DateForm::Postgres, DateOrder::Dmy) => "Postgres, DMY",
            (DateForm::Postgres, DateOrder::Ymd) => "Postgres, YMD",
            (DateForm::German, DateOrder::Mdy) => "German, MDY",
            (DateForm::German, DateOrder::Dmy) => "German, DMY",
            (DateForm::German, DateOrder::Ymd) => "German, YMD",
        }
    }

    /// Reads `IntervalStyle`.
    pub fn parse_interval_form(text: &str) -> Option<IntervalForm> {
        Some(match text.trim().to_ascii_lowercase().as_str() {
            "postgres" => IntervalForm::Postgres,
            "postgres_verbose" => IntervalForm::Verbose,
            "sql_standard" => IntervalForm::Sql,
            "iso_8601" => IntervalForm::Iso,
            _ => return None,
        })
    }
}

impl From<TimeZone> for Style {
    fn from(zone: TimeZone) -> Style {
        Style::iso(zone)
    }
}

impl From<&TimeZone> for Style {
    fn from(zone: &TimeZone) -> Style {
        Style::iso(*zone)
    }
}

impl From<&Style> for Style {
    fn from(style: &Style) -> Style {
        *style
    }
}
