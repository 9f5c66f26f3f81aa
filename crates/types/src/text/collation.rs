//! Collations, and which one an expression has.
//!
//! ```text
//!   name                        implicit: that of the column, if it has one of its own
//!   name COLLATE "sv-x-icu"     explicit: goes before what is implicit
//!   a || b                      that of its parts; of two implicit ones none can be told
//! ```
//! Text is ordered by its bytes unless a collation names a locale. This knows nothing of how a
//! locale orders text: who computes that is handed its name.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use crate::{SqlError, SqlResult, SqlState, SqlType};

/// A collation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collation {
    /// Oid in `pg_collation`.
    pub oid: u32,
    /// Name, without schema.
    pub name: String,
    /// The locale whose order it is, as `provider = icu` writes it; `None` orders by bytes.
    pub locale: Option<String>,
    /// Whether texts are equal only if their bytes are.
    pub deterministic: bool,
}

/// Oid of the collation of the database, which every text has that nothing gives another.
pub const DEFAULT_COLLATION: u32 = 100;

/// Those that order by bytes.
const BY_BYTES: [(u32, &str); 5] = [
    (DEFAULT_COLLATION, "default"),
    (950, "C"),
    (951, "POSIX"),
    (12_340, "ucs_basic"),
    (12_341, "C.utf8"),
];

/// Other names of collations.
const ALIASES: [(&str, &str); 2] = [("C.UTF-8", "C.utf8"), ("unicode", "und-x-icu")];

/// Oid of the first collation of a locale.
const FIRST_OF_LOCALES: u32 = 12_342;

/// Locales of the Common Locale Data Repository: a language, then what may stand behind it. A
/// language begun with `+` goes on.
const LOCALES: &str = "\
    af/NA/ZA agq/CM ak/GH am/ET \
    ar/001/AE/BH/DJ/DZ/EG/EH/ER/IL/IQ/JO/KM/KW/LB/LY/MA/MR/OM/PS/QA/SA/SD/SO/SS/SY \
    +ar/TD/TN/YE as/IN asa/TZ ast/ES az/Cyrl-AZ/Cyrl/Latn-AZ/Latn bas/CM be/BY bem/ZM bez/TZ \
    bg/BG bgc/IN bho/IN bm/ML bn/BD/IN bo/CN/IN br/FR brx/IN bs/Cyrl-BA/Cyrl/Latn-BA/Latn \
    ca/AD/ES/FR/IT ccp/BD/IN ce/RU ceb/PH cgg/UG chr/US ckb/IQ/IR cs/CZ cv/RU cy/GB da/DK/GL \
    dav/KE de/AT/BE/CH/DE/IT/LI/LU dje/NE doi/IN dsb/DE dua/CM dyo/SN dz/BT ebu/KE ee/GH/TG \
    el/CY/GR en/001/150/AE/AG/AI/AS/AT/AU/BB/BE/BI/BM/BS/BW/BZ/CA/CC/CH/CK/CM/CX/CY/DE/DG/DK \
    +en/DM/ER/FI/FJ/FK/FM/GB/GD/GG/GH/GI/GM/GU/GY/HK/IE/IL/IM/IN/IO/JE/JM/KE/KI/KN \
    +en/KY/LC/LR/LS/MG/MH/MO/MP/MS/MT/MU/MV/MW/MY/NA/NF/NG/NL/NR/NU/NZ/PG/PH/PK/PN \
    +en/PR/PW/RW/SB/SC/SD/SE/SG/SH/SI/SL/SS/SX/SZ/TC/TK/TO/TT/TV/TZ/UG/UM \
    +en/US/VC/VG/VI/VU/WS/ZA/ZM/ZW eo/001 \
    es/419/AR/BO/BR/BZ/CL/CO/CR/CU/DO/EA/EC/ES/GQ/GT/HN/IC/MX/NI/PA/PE/PH/PR/PY/SV \
    +es/US/UY/VE et/EE eu/ES ewo/CM fa/AF/IR \
    ff/Adlm-BF/Adlm-CM/Adlm-GH/Adlm-GM/Adlm-GN/Adlm-GW/Adlm-LR/Adlm-MR/Adlm-NE \
    +ff/Adlm-NG/Adlm-SL/Adlm-SN/Adlm/Latn-BF/Latn-CM/Latn-GH/Latn-GM/Latn-GN/Latn-GW \
    +ff/Latn-LR/Latn-MR/Latn-NE/Latn-NG/Latn-SL/Latn-SN/Latn fi/FI fil/PH fo/DK/FO \
    fr/BE/BF/BI/BJ/BL/CA/CD/CF/CG/CH/CI/CM/DJ/DZ/FR/GA/GF/GN/GP/GQ/HT/KM/LU/MA/MC/MF \
    +fr/MG/ML/MQ/MR/MU/NC/NE/PF/PM/RE/RW/SC/SN/SY/TD/TG/TN/VU/WF/YT fur/IT fy/NL ga/GB/IE \
    gd/GB gl/ES gsw/CH/FR/LI gu/IN guz/KE gv/IM ha/GH/NE/NG haw/US he/IL hi/IN/Latn-IN/Latn \
    hr/BA/HR hsb/DE hu/HU hy/AM ia/001 id/ID ig/NG ii/CN is/IS it/CH/IT/SM/VA ja/JP jgo/CM \
    jmc/TZ jv/ID ka/GE kab/DZ kam/KE kde/TZ kea/CV kgp/BR khq/ML ki/KE kk/KZ kkj/CM kl/GL \
    kln/KE km/KH kn/IN ko/KP/KR kok/IN ks/Arab-IN/Arab/Deva-IN/Deva ksb/TZ ksf/CM ksh/DE ku/TR \
    kw/GB ky/KG lag/TZ lb/LU lg/UG lkt/US ln/AO/CD/CF/CG lo/LA lrc/IQ/IR lt/LT lu/CD luo/KE \
    luy/KE lv/LV mai/IN mas/KE/TZ mer/KE mfe/MU mg/MG mgh/MZ mgo/CM mi/NZ mk/MK ml/IN mn/MN \
    mni/Beng-IN/Beng mr/IN ms/BN/ID/MY/SG mt/MT mua/CM my/MM mzn/IR naq/NA nb/NO/SJ nd/ZW \
    ne/IN/NP nl/AW/BE/BQ/CW/NL/SR/SX nmg/CM nn/NO nnh/CM no nus/SS nyn/UG om/ET/KE or/IN \
    os/GE/RU pa/Arab-PK/Arab/Guru-IN/Guru pcm/NG pl/PL ps/AF/PK \
    pt/AO/BR/CH/CV/GQ/GW/LU/MO/MZ/PT/ST/TL qu/BO/EC/PE raj/IN rm/CH rn/BI ro/MD/RO rof/TZ \
    ru/BY/KG/KZ/MD/RU/UA rw/RW rwk/TZ sa/IN sah/RU saq/KE sat/Olck-IN/Olck sbp/TZ sc/IT \
    sd/Arab-PK/Arab/Deva-IN/Deva se/FI/NO/SE seh/MZ ses/ML sg/CF shi/Latn-MA/Latn/Tfng-MA/Tfng \
    si/LK sk/SK sl/SI smn/FI sn/ZW so/DJ/ET/KE/SO sq/AL/MK/XK \
    sr/Cyrl-BA/Cyrl-ME/Cyrl-RS/Cyrl-XK/Cyrl/Latn-BA/Latn-ME/Latn-RS/Latn-XK/Latn \
    su/Latn-ID/Latn sv/AX/FI/SE sw/CD/KE/TZ/UG ta/IN/LK/MY/SG te/IN teo/KE/UG tg/TJ th/TH \
    ti/ER/ET tk/TM to/TO tr/CY/TR tt/RU twq/NE tzm/MA ug/CN uk/UA und ur/IN/PK \
    uz/Arab-AF/Arab/Cyrl-UZ/Cyrl/Latn-UZ/Latn vai/Latn-LR/Latn/Vaii-LR/Vaii vi/VN vun/TZ \
    wae/CH wo/SN xh/ZA xog/UG yav/CM yi/001 yo/BJ/NG yrl/BR/CO/VE \
    yue/Hans-CN/Hans/Hant-HK/Hant zgh/MA \
    zh/Hans-CN/Hans-HK/Hans-MO/Hans-SG/Hans/Hant-HK/Hant-MO/Hant-TW/Hant zu/ZA";

/// The collations that are always there, in `pg_catalog`.
pub fn built_in_collations() -> &'static [Arc<Collation>] {
    static ALL: LazyLock<Vec<Arc<Collation>>> = LazyLock::new(|| {
        let bytes = BY_BYTES.iter().map(|(oid, name)| Collation {
            oid: *oid,
            name: (*name).to_string(),
            locale: None,
            deterministic: true,
        });
        let locales = LOCALES.split(' ').flat_map(|word| {
            let (language, behind) = word.split_once('/').unwrap_or((word, ""));
            let bare = language.trim_start_matches('+');
            let itself = (bare == language).then(|| bare.to_string());
            let longer = behind.split('/').filter(|part| !part.is_empty());
            itself.into_iter().chain(longer.map(move |part| format!("{bare}-{part}")))
        });
        let icu = locales.zip(FIRST_OF_LOCALES..).map(|(locale, oid)| Collation {
            oid,
            name: format!("{locale}-x-icu"),
            locale: Some(locale),
            deterministic: true,
        });
        bytes.chain(icu).map(Arc::new).collect()
    });
    &ALL
}

/// One of those by its name.
pub fn built_in_collation(name: &str) -> Option<&'static Arc<Collation>> {
    static BY_NAME: LazyLock<HashMap<&str, &Arc<Collation>>> =
        LazyLock::new(|| built_in_collations().iter().map(|c| (c.name.as_str(), c)).collect());
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    BY_NAME.get(name).copied()
}

/// 42704 for the name of no collation.
pub fn no_collation(shown: &str) -> SqlError {
    let text = format!("collation \"{shown}\" for encoding \"UTF8\" does not exist");
    SqlError::new(SqlState::UNDEFINED_OBJECT, text)
}

/// Which collation an expression has, and how that came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Collated {
    /// That of the database, or its type knows none.
    #[default]
    Default,
    /// It is that of a column.
    Implicit(Arc<Collation>),
    /// COLLATE says so.
    Explicit(Arc<Collation>),
    /// Its parts have different ones, and nothing says which to take.
    Indeterminate(Arc<Collation>, Arc<Collation>),
    /// COLLATE says two.
    Clash(Arc<Collation>, Arc<Collation>),
    /// A row with values that are not ordered by their bytes, or one of these; whether equal ones
    /// have equal bytes.
    Row(bool),
}

impl Collated {
    /// That of an expression with these parts.
    #[must_use]
    pub fn with(&self, other: &Collated) -> Collated {
        use Collated as C;
        match (self, other) {
            (C::Default, one) | (one, C::Default) => one.clone(),
            (clash @ C::Clash(..), _) | (_, clash @ C::Clash(..)) => clash.clone(),
            (C::Explicit(a), C::Explicit(b)) if a.oid != b.oid => C::Clash(a.clone(), b.clone()),
            (one @ C::Explicit(_), _) | (_, one @ C::Explicit(_)) => one.clone(),
            (C::Row(a), C::Row(b)) => C::Row(*a && *b),
            (one @ C::Row(_), _) | (_, one @ C::Row(_)) => one.clone(),
            (two @ C::Indeterminate(..), _) | (_, two @ C::Indeterminate(..)) => two.clone(),
            (C::Implicit(a), C::Implicit(b)) if a.oid != b.oid => {
                C::Indeterminate(a.clone(), b.clone())
            }
            (one, _) => one.clone(),
        }
    }

    /// That of a column that shows such values.
    #[must_use]
    pub fn of_column(&self) -> Collated {
        match self {
            Collated::Explicit(c) if c.oid == DEFAULT_COLLATION => Collated::Default,
            Collated::Explicit(c) => Collated::Implicit(c.clone()),
            other => other.clone(),
        }
    }

    /// That of a column which is declared with a collation.
    pub fn declared(collation: Option<Arc<Collation>>) -> Collated {
        match collation {
            Some(c) if c.oid != DEFAULT_COLLATION => Collated::Implicit(c),
            _ => Collated::Default,
        }
    }

    /// The collation itself, if there is one other than the database's.
    pub fn known(&self) -> Option<&Arc<Collation>> {
        match self {
            Collated::Implicit(c) | Collated::Explicit(c) => Some(c),
            _ => None,
        }
    }

    /// Whether values compare by their bytes.
    pub fn is_by_bytes(&self) -> bool {
        match self {
            Collated::Default => true,
            Collated::Implicit(c) | Collated::Explicit(c) => c.locale.is_none(),
            _ => false,
        }
    }

    /// Whether values are equal only if their bytes are.
    pub fn is_deterministic(&self) -> bool {
        match self {
            Collated::Row(deterministic) => *deterministic,
            other => other.known().is_none_or(|own| own.deterministic),
        }
    }

    /// 42P21 if COLLATE says two different things.
    ///
    /// # Errors
    /// That.
    pub fn check_explicit(&self) -> SqlResult<()> {
        let Collated::Clash(a, b) = self else { return Ok(()) };
        let text = format!(
            "collation mismatch between explicit collations \"{}\" and \"{}\"",
            a.name, b.name
        );
        Err(SqlError::new(SqlState::COLLATION_MISMATCH, text))
    }

    /// 42P21 if the columns of a set operation have two.
    ///
    /// # Errors
    /// That.
    pub fn check_implicit(&self) -> SqlResult<()> {
        self.check_explicit()?;
        let Collated::Indeterminate(a, b) = self else { return Ok(()) };
        let text = format!(
            "collation mismatch between implicit collations \"{}\" and \"{}\"",
            a.name, b.name
        );
        Err(SqlError::new(SqlState::COLLATION_MISMATCH, text).with_hint(
            "You can choose the collation by applying the COLLATE clause to one or both \
             expressions.",
        ))
    }

    /// The locale that values are compared by; `None` compares bytes.
    ///
    /// # Errors
    /// 42P21, 42P22 if there is no telling; 0A000 for rows.
    pub fn locale(&self, what: &str) -> SqlResult<Option<&str>> {
        self.check_explicit()?;
        match self {
            Collated::Default | Collated::Clash(..) => Ok(None),
            Collated::Implicit(c) | Collated::Explicit(c) => Ok(c.locale.as_deref()),
            Collated::Indeterminate(..) => {
                let text = format!("could not determine which collation to use for {what}");
                Err(SqlError::new(SqlState::INDETERMINATE_COLLATION, text)
                    .with_hint("Use the COLLATE clause to set the collation explicitly."))
            }
            Collated::Row(_) => {
                Err(SqlError::unsupported("the order of rows that hold texts of a locale")
                    .with_hint("Order by their fields."))
            }
        }
    }
}

impl SqlType {
    /// Refuses a collation that values of this type cannot have.
    ///
    /// # Errors
    /// 42804 if they have none; 0A000 for `citext` by a locale.
    pub fn check_collation(&self, collation: &Collation) -> SqlResult<()> {
        let text = match self.element().unwrap_or(self) {
            _ if self.is_collatable() => return Ok(()),
            // Its letters are folded, and then it is ordered by bytes.
            SqlType::Citext if collation.locale.is_none() => return Ok(()),
            SqlType::Citext => {
                let text = format!("citext with the collation \"{}\"", collation.name);
                return Err(SqlError::unsupported(text)
                    .with_hint("Values of citext are ordered by the bytes of their folded text."));
            }
            _ => format!("collations are not supported by type {}", self.base_name()),
        };
        Err(SqlError::new(SqlState::DATATYPE_MISMATCH, text))
    }

    /// Whether values have a collation: texts, and arrays of them.
    pub fn is_collatable(&self) -> bool {
        match self {
            SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) | SqlType::Name => true,
            SqlType::Array(element) => element.is_collatable(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Arc<Collation> {
        built_in_collation(name).unwrap().clone()
    }

    #[test]
    fn locales_have_collations() {
        for name in ["sv-x-icu", "sv-SE-x-icu", "en-ZW-x-icu", "zh-Hant-TW-x-icu", "und-x-icu"] {
            assert_eq!(format!("{}-x-icu", named(name).locale.as_ref().unwrap()), name);
        }
        assert_eq!(named("unicode").name, "und-x-icu");
        assert!(named("C").locale.is_none());
        assert!(built_in_collation("zz-x-icu").is_none());
        let mut oids: Vec<u32> = built_in_collations().iter().map(|c| c.oid).collect();
        let count = oids.len();
        oids.sort_unstable();
        oids.dedup();
        assert_eq!(oids.len(), count);
        assert!(count > 800 && oids[count - 1] < 16_384);
    }

    #[test]
    fn explicit_goes_before_implicit() {
        use Collated as C;
        let [sv, de] = ["sv-x-icu", "de-x-icu"].map(named);
        let (column, other) = (C::Implicit(sv.clone()), C::Implicit(de.clone()));
        let (written, clash) = (C::Explicit(de.clone()), C::Explicit(sv.clone()));
        assert_eq!(C::Default.with(&column), column);
        assert_eq!(column.with(&written), written);
        assert_eq!(column.with(&other), C::Indeterminate(sv.clone(), de.clone()));
        assert_eq!(column.with(&other).with(&written), written);
        assert_eq!(written.with(&clash), C::Clash(de, sv));
        assert_eq!(written.of_column(), other);
    }
}
