//! The text forms.
//!
//! ```text
//!   point     (x,y)      x,y
//!   box       (x,y),(x,y)     ((x,y),(x,y))     x,y,x,y     (x,y,x,y)
//!   lseg      the same, and [(x,y),(x,y)]
//!   polygon   any number of points, as of a box
//!   path      the same; in square brackets it is open
//!   line      {A,B,C}, or two points as of an lseg
//!   circle    <(x,y),r>     ((x,y),r)     (x,y),r     x,y,r
//! ```

use super::plane::zero;
use super::segments::{line_at, slope};
use super::{Geometry, GeometryKind, Point};
use crate::text::float::{float8_text, parse_float8};
use crate::text_in::bad_input;
use crate::{SqlError, SqlResult, SqlState, Style};

impl Geometry {
    /// Reads a text form.
    pub(crate) fn parse(kind: GeometryKind, text: &str) -> SqlResult<Geometry> {
        let mut reader = Reader { text, at: 0, kind };
        let value = match kind {
            GeometryKind::Point => Geometry::Point(reader.pair()?),
            GeometryKind::Lseg => {
                let (points, _) = reader.points(2, true)?;
                Geometry::Lseg([points[0], points[1]])
            }
            GeometryKind::Box => {
                let (points, _) = reader.points(2, false)?;
                Geometry::boxed(points[1], points[0])
            }
            GeometryKind::Polygon => {
                let count = reader.count()?;
                Geometry::Polygon(reader.points(count, false)?.0)
            }
            GeometryKind::Path => reader.path()?,
            GeometryKind::Line => reader.line()?,
            GeometryKind::Circle => reader.circle()?,
        };
        if reader.at < text.len() { Err(reader.bad()) } else { Ok(value) }
    }

    /// The text form.
    pub(crate) fn text(&self, style: &Style) -> String {
        let number = |n: f64| float8_text(n, style.float_digits);
        let pair = |p: &Point| format!("({},{})", number(p.x), number(p.y));
        let list = |points: &[Point]| points.iter().map(pair).collect::<Vec<_>>().join(",");
        match self {
            Geometry::Point(p) => pair(p),
            Geometry::Line(line) => format!("{{{}}}", line.map(number).join(",")),
            Geometry::Lseg(ends) => format!("[{}]", list(ends)),
            Geometry::Box(corners) => list(corners),
            Geometry::Path { closed: false, points } => format!("[{}]", list(points)),
            Geometry::Path { points, .. } | Geometry::Polygon(points) => {
                format!("({})", list(points))
            }
            Geometry::Circle { center, radius } => {
                format!("<{},{}>", pair(center), number(*radius))
            }
        }
    }
}

/// How much of a text is a number, as C's `strtod` reads it: what follows need not be a sign that
/// no number has.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let sign = usize::from(text.starts_with(['+', '-']));
    for word in ["infinity", "inf", "nan"] {
        if bytes
            .get(sign..sign + word.len())
            .is_some_and(|b| b.eq_ignore_ascii_case(word.as_bytes()))
        {
            return sign + word.len();
        }
    }
    let whole = digits(sign);
    let mut end = sign + whole;
    if bytes.get(end) == Some(&b'.') && whole + digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if end == sign {
        return 0;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let from = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if from < bytes.len() && digits(from) > 0 {
            end = from + digits(from);
        }
    }
    end
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    kind: GeometryKind,
}

impl Reader<'_> {
    fn bad(&self) -> SqlError {
        bad_input(self.kind.name(), self.text)
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace() || b == 0x0b) {
            self.at += 1;
        }
    }

    /// Goes past a sign if it is next.
    fn eat(&mut self, sign: u8) -> bool {
        let found = self.peek() == Some(sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: u8) -> SqlResult<()> {
        if self.eat(sign) { Ok(()) } else { Err(self.bad()) }
    }

    fn number(&mut self) -> SqlResult<f64> {
        self.blanks();
        let word = &self.rest()[..number_length(self.rest())];
        let value = match parse_float8(word) {
            Err(e) if e.state() == SqlState::INVALID_TEXT_REPRESENTATION => return Err(self.bad()),
            other => other?,
        };
        self.at += word.len();
        self.blanks();
        Ok(value)
    }

    /// Two numbers, perhaps in parentheses.
    fn pair(&mut self) -> SqlResult<Point> {
        self.blanks();
        let inside = self.eat(b'(');
        let x = self.number()?;
        self.expect(b',')?;
        let point = Point::at(x, self.number()?);
        if inside {
            self.expect(b')')?;
            self.blanks();
        }
        Ok(point)
    }

    /// Whether the parenthesis that is next is the only one from here on.
    fn single(&self) -> bool {
        self.peek() == Some(b'(') && self.rest().rfind('(') == Some(0)
    }

    /// The number of points, which all commas but those between points tell.
    fn count(&self) -> SqlResult<usize> {
        let commas = self.text.bytes().filter(|b| *b == b',').count();
        if commas % 2 == 1 { Ok(commas.div_ceil(2)) } else { Err(self.bad()) }
    }

    /// So many points, perhaps in parentheses or, where that may be, in square brackets; then the
    /// flag is set.
    fn points(&mut self, count: usize, may_be_open: bool) -> SqlResult<(Vec<Point>, bool)> {
        self.blanks();
        let open = self.peek() == Some(b'[');
        let mut depth = 0;
        if open {
            if !may_be_open {
                return Err(self.bad());
            }
            (self.at, depth) = (self.at + 1, 1);
        } else if self.peek() == Some(b'(') {
            let single = self.single();
            let from = self.at;
            self.at += 1;
            self.blanks();
            if single || self.peek() == Some(b'(') {
                depth = 1;
            } else {
                self.at = from;
            }
        }
        let mut points = Vec::new();
        for _ in 0..count {
            points.push(self.pair()?);
            self.eat(b',');
        }
        for _ in 0..depth {
            if !(self.eat(b')') || open && self.eat(b']')) {
                return Err(self.bad());
            }
            self.blanks();
        }
        Ok((points, open))
    }

    fn path(&mut self) -> SqlResult<Geometry> {
        let count = self.count()?;
        self.blanks();
        let single = self.single();
        self.at += usize::from(single);
        let (points, open) = self.points(count, true)?;
        if single {
            self.expect(b')')?;
            self.blanks();
        }
        Ok(Geometry::Path { closed: !open, points })
    }

    fn line(&mut self) -> SqlResult<Geometry> {
        let refused = |text| Err(SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, text));
        self.blanks();
        if self.eat(b'{') {
            let a = self.number()?;
            self.expect(b',')?;
            let b = self.number()?;
            self.expect(b',')?;
            let c = self.number()?;
            self.expect(b'}')?;
            self.blanks();
            if self.at < self.text.len() {
                return Err(self.bad());
            }
            if zero(a) && zero(b) {
                return refused("invalid line specification: A and B cannot both be zero");
            }
            return Ok(Geometry::Line([a, b, c]));
        }
        let (points, _) = self.points(2, true)?;
        if self.at < self.text.len() {
            return Err(self.bad());
        }
        if points[0].is(points[1]) {
            return refused("invalid line specification: must be two distinct points");
        }
        Ok(Geometry::Line(line_at(points[0], slope([points[0], points[1]])?)?))
    }

    fn circle(&mut self) -> SqlResult<Geometry> {
        self.blanks();
        let angle = self.eat(b'<');
        let mut depth = u8::from(angle);
        if self.peek() == Some(b'(') {
            let from = self.at;
            self.at += 1;
            self.blanks();
            match angle {
                false if self.peek() == Some(b'(') => depth = 1,
                _ => self.at = from,
            }
        }
        let center = self.pair()?;
        self.eat(b',');
        let radius = self.number()?;
        if radius < 0.0 {
            return Err(self.bad());
        }
        for _ in 0..depth {
            if !self.eat(b')') && !self.eat(b'>') {
                return Err(self.bad());
            }
            self.blanks();
        }
        Ok(Geometry::Circle { center, radius })
    }
}
