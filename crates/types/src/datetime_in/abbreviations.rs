//! Abbreviations of time zones, with the meaning that they have in PostgreSQL's default set.

use crate::TimeZone;

/// Seconds east of UTC, the abbreviations of standard times and those of summer times.
const FIXED: &[(i32, &str, &str)] = &[
    (-36_000, "HST TAHT", ""),
    (-34_200, "MART", ""),
    (-32_400, "AKST GAMT", ""),
    (-28_800, "PST", "AKDT"),
    (-25_200, "MST", "PDT"),
    (-21_600, "CST GALT", "MDT"),
    (-18_000, "ACT COT EST PET", "CDT"),
    (-14_400, "BOT AMT AST", "EDT"),
    (-12_600, "NFT NST", ""),
    (-10_800, "BRA BRT GFT PMST UYT WGT", "CLST PYST ADT"),
    (-9_000, "", "NDT"),
    (-7_200, "FNT", "BRST PMDT UYST WGST"),
    (-3_600, "EGT AZOT", "FNST"),
    (0, "GMT UCT UT UTC Z ZULU WET", "EGST AZOST"),
    (3_600, "WAT CET MET MEZ", "BST WETDST"),
    (7_200, "SAST IST EET", "BDST CEST CETDST MEST MESZ METDST"),
    (10_800, "EAT FET", "IDT EEST EETDST"),
    (12_600, "IRT", ""),
    (14_400, "MUT RET SCT", "MSD"),
    (16_200, "AFT", ""),
    (18_000, "PKT TJT UZT MVT TFT", "MUST"),
    (20_700, "NPT", ""),
    (21_600, "ALMT BDT BTT XJT", "KGST PKST UZST YEKST"),
    (23_400, "MMT", ""),
    (25_200, "ICT WAST CXT", "ALMST"),
    (28_800, "BNT BORT CCT HKT MYT PHT AWST", "WADT"),
    (31_500, "ACWST", ""),
    (32_400, "JAYT JST KST PWT", "ULAST AWSST WDT"),
    (34_200, "ACST CAST", ""),
    (36_000, "DDUT AEST LIGT CHUT MPT PGT TRUT YAPT", "KDT"),
    (37_800, "LHST", "ACSST ACDT CADT SADT"),
    (39_600, "PONT VUT", "AESST AEDT"),
    (43_200, "NZT FJT GILT MHT NZST TVT WAKT WFT", ""),
    (45_900, "CHAST", ""),
    (46_800, "TOT", "FJST NZDT"),
    (49_500, "", "CHADT"),
];

/// Abbreviations that have meant different things: as much as the zone's clocks at the time.
const OF_ZONES: &[(&str, &str)] = &[
    ("ART ARST", "America/Argentina/Buenos_Aires"),
    ("PYT", "America/Asuncion"),
    ("VET", "America/Caracas"),
    ("GYT", "America/Guyana"),
    ("CLT", "America/Santiago"),
    ("DAVT", "Antarctica/Davis"),
    ("MAWT", "Antarctica/Mawson"),
    ("ANAST ANAT", "Asia/Anadyr"),
    ("TMT", "Asia/Ashgabat"),
    ("AZST AZT", "Asia/Baku"),
    ("KGT", "Asia/Bishkek"),
    ("LKT", "Asia/Colombo"),
    ("IRKST IRKT", "Asia/Irkutsk"),
    ("PETST PETT", "Asia/Kamchatka"),
    ("KRAST KRAT", "Asia/Krasnoyarsk"),
    ("MAGST MAGT", "Asia/Magadan"),
    ("NOVST NOVT", "Asia/Novosibirsk"),
    ("OMSST OMST", "Asia/Omsk"),
    ("SGT", "Asia/Singapore"),
    ("GEST GET", "Asia/Tbilisi"),
    ("ULAT", "Asia/Ulaanbaatar"),
    ("VLAST VLAT", "Asia/Vladivostok"),
    ("YAKST YAKT", "Asia/Yakutsk"),
    ("YEKT", "Asia/Yekaterinburg"),
    ("AMST", "Asia/Yerevan"),
    ("FKST FKT", "Atlantic/Stanley"),
    ("LHDT", "Australia/Lord_Howe"),
    ("MSK", "Europe/Moscow"),
    ("VOLT", "Europe/Volgograd"),
    ("IOT", "Indian/Chagos"),
    ("EASST EAST", "Pacific/Easter"),
    ("TKT", "Pacific/Fakaofo"),
    ("LINT", "Pacific/Kiritimati"),
    ("KOST", "Pacific/Kosrae"),
    ("NUT", "Pacific/Niue"),
    ("CKT", "Pacific/Rarotonga"),
];

/// All of them: what they mean, and whether of a summer time, which is not known of those whose
/// zone tells.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, TimeZone, Option<bool>)> {
    let named = |names: &'static str, zone: TimeZone, summer: Option<bool>| {
        names.split(' ').filter(|name| !name.is_empty()).map(move |name| (name, zone, summer))
    };
    let fixed = FIXED.iter().flat_map(move |(seconds, standard, summer)| {
        let zone = TimeZone::Fixed(*seconds);
        named(standard, zone, Some(false)).chain(named(summer, zone, Some(true)))
    });
    let moving = OF_ZONES.iter().flat_map(move |(names, zone)| {
        let zone = zone.parse().map_or(TimeZone::utc(), TimeZone::Named);
        named(names, zone, None)
    });
    fixed.chain(moving)
}

/// What an abbreviation in any case means.
pub(crate) fn meaning(name: &str) -> Option<TimeZone> {
    all().find(|(known, ..)| known.eq_ignore_ascii_case(name)).map(|(_, zone, _)| zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_zone_of_an_abbreviation_is_known() {
        for (_, zone) in OF_ZONES {
            assert!(zone.parse::<chrono_tz::Tz>().is_ok(), "{zone}");
        }
        assert_eq!(meaning("ist"), Some(TimeZone::Fixed(7200)));
        assert_eq!(meaning("xyz"), None);
        assert!(all().count() > 190);
    }
}
