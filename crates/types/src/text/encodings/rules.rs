//! What the encodings of East Asia are made of.
//!
//! `encoding_rs` has the tables of the WHATWG, which are those of browsers: wider here, otherwise
//! there. What PostgreSQL does not have is left out again, and what it has otherwise is put over
//! it.

use encoding_rs::{BIG5, EUC_JP, EUC_KR, GB18030, SHIFT_JIS};

use super::double::{Double, Form};

/// How one of them differs from a table of the library.
pub(super) struct Rules {
    library: &'static encoding_rs::Encoding,
    /// Codes that are none, first and last.
    without: &'static [(u16, u16)],
    /// Characters for private use are not taken from the library.
    without_private: bool,
    /// Characters of codes that follow each other.
    runs: &'static [(u16, &'static str)],
    /// Rows of characters for private use: lead byte and first character.
    private_rows: &'static [(u8, u16)],
    /// Characters whose codes mean another one.
    pub(super) one_way: &'static [(char, u16)],
    /// Of the codes of a character the one of the lowest rank is written, of those the first.
    pub(super) rank: fn(u16) -> u8,
}

impl Rules {
    const fn of(library: &'static encoding_rs::Encoding) -> Rules {
        Rules {
            library,
            without: &[],
            without_private: true,
            runs: &[],
            private_rows: &[],
            one_way: &[],
            rank: |_| 0,
        }
    }

    /// The character of each code.
    pub(super) fn fill(&self, form: Form, chars: &mut [u16]) {
        for code in 0x80..=u16::MAX {
            let is_out = |(first, last): &(u16, u16)| (*first..=*last).contains(&code);
            if !self.without.iter().any(is_out) {
                chars[usize::from(code)] = self.library_char(form, code).unwrap_or(0);
            }
        }
        for (row, first) in self.private_rows {
            for at in 0..94 {
                chars[usize::from(*row) << 8 | usize::from(0xa1 + at)] = first + at;
            }
        }
        for (first, run) in self.runs {
            let mut code = *first;
            for c in run.encode_utf16() {
                chars[usize::from(code)] = c;
                code = following(form, code);
            }
        }
    }

    fn library_char(&self, form: Form, code: u16) -> Option<u16> {
        let [first, second] = code.to_be_bytes();
        let long = [0x8f, first, second | 0x80];
        let bytes = match form {
            Form::Sjis if first == 0 => &long[2..],
            _ if first < 0x80 => return None,
            Form::EucJp if second < 0x80 => &long[..],
            Form::EucJp if first < 0xa1 && first != 0x8e || second < 0xa1 => return None,
            Form::Euc if first < 0xa1 || second < 0xa1 => return None,
            _ => &[first, second][..],
        };
        let text = self.library.decode_without_bom_handling_and_without_replacement(bytes)?;
        let mut units = text.encode_utf16();
        let (c, rest) = (units.next()?, units.next());
        let is_private = (0xe000..0xf900).contains(&c);
        (rest.is_none() && !(is_private && self.without_private)).then_some(c)
    }
}

/// The code behind this one in the order of the tables.
fn following(form: Form, code: u16) -> u16 {
    match (form, code.to_be_bytes()) {
        (Form::EucJp, [first, 0x7e]) => u16::from_be_bytes([first + 1, 0x21]),
        (Form::Any, [first, 0x7e]) => u16::from_be_bytes([first, 0xa1]),
        (Form::Any, [first, 0xfe]) => u16::from_be_bytes([first + 1, 0x40]),
        _ => code + 1,
    }
}

/// Only the rows and characters of GB2312 of what GBK has.
const NOT_GB2312: &[(u16, u16)] =
    &[(0xa2a1, 0xa2b0), (0xa2e3, 0xa2e4), (0xa6d9, 0xa6fe), (0xa8bb, 0xa8c4)];

const NOT_GBK: &[(u16, u16)] = &[
    (0x80, 0x80),
    (0xa2e3, 0xa2e3),
    (0xa3a0, 0xa3a0),
    (0xa6d9, 0xa6df),
    (0xa6ec, 0xa6ed),
    (0xa6f3, 0xa6f3),
    (0xa8bc, 0xa8bc),
    (0xa8bf, 0xa8bf),
    (0xa989, 0xa995),
    (0xfe50, 0xfea0),
];

/// Of Hong Kong's supplement nothing, and no signs that have no character of their own.
const NOT_BIG5: &[(u16, u16)] = &[
    (0x80, 0xa0fe),
    (0xa15a, 0xa15a),
    (0xa1c3, 0xa1c3),
    (0xa1c5, 0xa1c5),
    (0xa1fe, 0xa1fe),
    (0xa240, 0xa240),
    (0xa2cc, 0xa2cc),
    (0xa2ce, 0xa2ce),
    (0xa3c0, 0xa3e1),
    (0xc7fd, 0xc8fe),
    (0xf9dd, 0xffff),
];

const BIG5_RUNS: &[(u16, &str)] = &[
    (0xa145, "•"),
    (0xa14e, "､"),
    (0xa1c2, "‾"),
    (0xa1e3, "∼"),
    (0xa1f2, "♁☉"),
    (0xa241, "／＼"),
    (0xa244, "¥"),
    (0xa246, "¢£"),
    (
        0xc6a1,
        "ヾゝゞ々ぁあぃいぅうぇえぉおかがきぎくぐけげこごさざしじすずせぜそぞただちぢっつづてで\
         とどなにぬねのはばぱひびぴふぶぷへべぺほぼぽまみむめもゃやゅゆょよらりるれろゎわゐゑを\
         んァアィイゥウェエォオカガキギクグケゲコゴサザシジスズセゼソゾタダチヂッツヅテデトドナ\
         ニヌネノハバパヒビピフブプヘベペホボポマミムメモャヤュユョヨラリルレロヮワヰヱヲンヴヵヶ\
         ДЕЁЖЗИЙКЛМУФХЦЧШЩЪЫЬЭЮЯабвгдеёжзийклмнопрстуфхцчшщъыьэюя①②③④⑤⑥⑦⑧⑨⑩\
         ⑴⑵⑶⑷⑸⑹⑺⑻⑼⑽",
    ),
];

/// IBM's characters stand at the end of the long forms, and not in rows of two bytes.
const EUC_JP_RUNS: &[(u16, &str)] = &[
    (0xa243, "￤"),
    (
        0xf373,
        "ⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ＇＂㈱№℡炻仼僴凬匇匤\u{fa0e}咊坙\u{fa0f}\
         \u{fa10}增寬峵嵓\u{fa11}德悅愠敎昻晥\u{fa12}\u{f929}栁\u{fa13}\u{fa14}橫櫢淸\
         淲瀨\u{fa15}\u{fa16}甁皂皞\u{fa17}礰\u{fa18}\u{fa19}\u{fa1a}\u{fa1b}竧\u{fa1c}\
         \u{fa1d}綠緖\u{fa1e}荢\u{fa1f}薰\u{fa20}\u{fa21}蠇\u{fa22}譿賴赶\u{fa23}\u{fa24}\
         \u{fa25}郞\u{fa26}鄕\u{fa27}\u{fa28}閒\u{f9dc}\u{fa29}霻靍靑\u{fa2a}\u{fa2b}\
         \u{fa2c}馞髙魲\u{fa2d}黑",
    ),
];

/// Rows for private use and IBM's characters where NEC has put them are not, or not first.
fn sjis_rank(code: u16) -> u8 {
    match code >> 8 {
        0x81 => 0,
        0xfa..=0xfc => 1,
        _ => 2,
    }
}

pub(super) static EUC_JP_CODES: Double = Double::new(
    Form::EucJp,
    Rules {
        without: &[(0xf9a1, 0xfcfe), (0xa237, 0xa237)],
        runs: EUC_JP_RUNS,
        one_way: &[('\u{a6}', 0xa243)],
        // Two bytes before three.
        rank: |code| u8::from(code & 0x80 == 0),
        ..Rules::of(EUC_JP)
    },
);

pub(super) static SJIS_CODES: Double = Double::new(
    Form::Sjis,
    Rules {
        without: &[(0x80, 0x80), (0xf040, 0xf9fc)],
        one_way: &[
            ('\u{a2}', 0x8191),
            ('\u{a3}', 0x8192),
            ('\u{a5}', 0x5c),
            ('\u{ac}', 0x81ca),
            ('\u{2016}', 0x8161),
            ('\u{203e}', 0x7e),
            ('\u{2212}', 0x817c),
            ('\u{301c}', 0x8160),
        ],
        rank: sjis_rank,
        ..Rules::of(SHIFT_JIS)
    },
);

pub(super) static EUC_KR_CODES: Double =
    Double::new(Form::Euc, Rules { runs: &[(0xa2e8, "㉾")], ..Rules::of(EUC_KR) });

pub(super) static UHC_CODES: Double = Double::new(
    Form::Any,
    Rules {
        runs: &[(0xa2e8, "㉾")],
        private_rows: &[(0xc9, 0xe000), (0xfe, 0xe05e)],
        ..Rules::of(EUC_KR)
    },
);

pub(super) static EUC_CN_CODES: Double = Double::new(
    Form::Euc,
    Rules { without: NOT_GB2312, runs: &[(0xa1a4, "・"), (0xa1aa, "―")], ..Rules::of(GB18030) },
);

pub(super) static GBK_CODES: Double = Double::new(
    Form::Any,
    Rules { without: NOT_GBK, one_way: &[('€', 0x80)], ..Rules::of(GB18030) },
);

pub(super) static BIG5_CODES: Double =
    Double::new(Form::Any, Rules { without: NOT_BIG5, runs: BIG5_RUNS, ..Rules::of(BIG5) });

/// As the standard of the year 2000 has it: what got characters of its own later is private there.
pub(super) static GB18030_CODES: Double = Double::new(
    Form::Gb18030,
    Rules {
        without: &[(0x80, 0x80)],
        without_private: false,
        runs: GB18030_RUNS,
        ..Rules::of(GB18030)
    },
);

const GB18030_RUNS: &[(u16, &str)] = &[
    (0xa3a0, "\u{e5e5}"),
    (0xa6d9, "\u{e78d}\u{e78e}\u{e78f}\u{e790}\u{e791}\u{e792}\u{e793}"),
    (0xa6ec, "\u{e794}\u{e795}"),
    (0xa6f3, "\u{e796}"),
    (0xa8bc, "\u{e7c7}"),
    (0xfe59, "\u{e81e}"),
    (0xfe61, "\u{e826}"),
    (0xfe66, "\u{e82b}\u{e82c}"),
    (0xfe6d, "\u{e832}"),
    (0xfe7e, "\u{e843}"),
    (0xfe90, "\u{e854}"),
    (0xfea0, "\u{e864}"),
];
