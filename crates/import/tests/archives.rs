//! Archives of pg_dump in all versions, sizes of numbers and compressions, and damaged ones.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use braid_env::fs::{DiskFs, FileSystem};
use braid_env::memory::Account;
use braid_env::random::Random;
use braid_import::dump::{Dump, Piece, Place};
use braid_import::{Compression, Folder};
use braid_types::SqlResult;

/// How data is compressed, as the format numbers it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Packed {
    Plain,
    Zlib,
    Lz4,
    Zstd,
}

/// Writes an archive of format custom, as pg_dump does.
struct Archive {
    out: Vec<u8>,
    version: (u8, u8),
    int_size: u8,
    packed: Packed,
}

impl Archive {
    fn int(&mut self, n: i64) {
        self.out.push(u8::from(n < 0));
        let bytes = n.unsigned_abs().to_le_bytes();
        self.out.extend((0..self.int_size as usize).map(|i| bytes.get(i).copied().unwrap_or(0)));
    }

    fn text(&mut self, text: Option<&str>) {
        self.int(text.map_or(-1, |t| t.len() as i64));
        self.out.extend_from_slice(text.unwrap_or_default().as_bytes());
    }

    fn head(&mut self) {
        self.out.extend_from_slice(b"PGDMP");
        let (major, minor) = self.version;
        self.out.extend([major, minor, 0, self.int_size, 8, 1]);
        match self.packed {
            _ if minor >= 15 => self.out.push(self.packed as u8),
            Packed::Plain => self.int(0),
            _ => self.int(-1),
        }
        for n in [1, 2, 3, 4, 5, 126, 0] {
            self.int(n);
        }
        for text in ["shop", "15.1", "15.1"] {
            self.text(Some(text));
        }
    }

    /// An entry; where its place in the file has to be written, if it has data.
    fn entry(&mut self, id: i64, kind: &str, definition: &str, copy: Option<&str>) -> usize {
        self.int(id);
        self.int(i64::from(copy.is_some()));
        self.text(Some("0"));
        self.text(Some("0"));
        self.text(Some("t"));
        self.text(Some(kind));
        self.int(2);
        self.text(Some(definition));
        self.text(Some("DROP TABLE t;\n"));
        self.text(copy);
        self.text(Some("public"));
        self.text(Some(""));
        if self.version.1 >= 14 {
            self.text(Some("heap"));
        }
        if self.version.1 >= 16 {
            self.int(i64::from(b'r'));
        }
        self.text(Some("me"));
        self.text(Some("false"));
        self.text(Some("1"));
        self.text(None);
        self.out.push(if copy.is_some() { 1 } else { 3 });
        self.out.extend([0; 8]);
        self.out.len() - 9
    }

    fn data(&mut self, id: i64, text: &[u8]) {
        self.out.push(1);
        self.int(id);
        for chunk in packed(self.packed, text).chunks(1000) {
            self.int(chunk.len() as i64);
            self.out.extend_from_slice(chunk);
        }
        self.int(0);
    }
}

fn packed(packed: Packed, text: &[u8]) -> Vec<u8> {
    match packed {
        Packed::Plain => text.to_vec(),
        Packed::Zlib => {
            let level = flate2::Compression::default();
            let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), level);
            zlib.write_all(text).unwrap();
            zlib.finish().unwrap()
        }
        Packed::Zstd => zstd::encode_all(text, 3).unwrap(),
        Packed::Lz4 => {
            // Blocks that refer to those before them; one of them is not compressed.
            let mut out = vec![0x04, 0x22, 0x4d, 0x18, 0x40, 0x40, 0];
            for (n, block) in text.chunks(50_000).enumerate() {
                let before = &text[(n * 50_000).saturating_sub(65_536)..n * 50_000];
                let bytes = match n {
                    1 => block.to_vec(),
                    _ => lz4_flex::block::compress_with_dict(block, before),
                };
                let flag = if n == 1 { 1u32 << 31 } else { 0 };
                out.extend((bytes.len() as u32 | flag).to_le_bytes());
                out.extend(bytes);
            }
            out.extend([0; 4]);
            out
        }
    }
}

fn rows() -> String {
    (0..9_000).map(|n| format!("{n}\ttext {}\n", n * 7919 % 1000)).collect::<String>() + "\\.\n\n\n"
}

/// An archive of one table; `told`: it says where its data is.
fn archive(version: (u8, u8), int_size: u8, packed: Packed, told: bool) -> Vec<u8> {
    let mut a = Archive { out: Vec::new(), version, int_size, packed };
    a.head();
    a.int(4);
    a.entry(1, "ENCODING", "SET client_encoding = 'UTF8';\n", None);
    a.entry(2, "ACL", "GRANT SELECT ON t TO you;\n", None);
    a.entry(3, "TABLE", "CREATE TABLE public.t (\n    a int, b text\n);\n", None);
    let place = a.entry(4, "TABLE DATA", "", Some("COPY public.t (a, b) FROM stdin;\n"));
    if !told {
        // Something else comes first.
        a.data(9, b"nobody asks for it");
    }
    let at = a.out.len() as u64;
    if told {
        a.out[place] = 2;
        a.out[place + 1..place + 9].copy_from_slice(&at.to_le_bytes());
    }
    a.data(4, rows().as_bytes());
    a.out
}

struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Home {
        let path = std::env::temp_dir().join(format!("braid-{name}-{}", std::process::id()));
        DiskFs.create_dir_all(&path).unwrap();
        Home(path)
    }

    fn read(&self, content: &[u8]) -> SqlResult<(Vec<String>, usize)> {
        let path = self.0.join("dump");
        DiskFs.create(&path).unwrap().write_at(content, 0).unwrap();
        let (fs, folder): (Arc<dyn FileSystem>, _) = (DiskFs::shared(), Folder::new(&self.0));
        let file = folder.files("dump").unwrap().remove(0);
        let account = Account::unlimited();
        let open = |from: &Place| {
            Dump::open(&fs, &folder, &file, Compression::None, 1 << 20, &account, from)
        };
        let mut dump = open(&Place::default())?;
        let (mut statements, mut data) = (Vec::new(), 0);
        while let Some(piece) = dump.next_piece()? {
            let Piece::Statement(line, text) = piece else { continue };
            let copies = text.starts_with("COPY") && text.ends_with("stdin");
            let place = dump.entry(line).unwrap_or_default();
            statements.push(format!("{place}: {}", text.replace('\n', " ")));
            while copies && dump.data()?.is_some() {
                data += 1;
                if data % 3_001 == 0 {
                    dump = again(dump, &open)?;
                }
            }
            dump = again(dump, &open)?;
        }
        Ok((statements, data))
    }
}

/// The same dump, opened once more at the place where it is.
fn again(dump: Dump, open: &dyn Fn(&Place) -> SqlResult<Dump>) -> SqlResult<Dump> {
    dump.place().map_or(Ok(dump), |place| open(&place))
}

impl Drop for Home {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_version_size_and_compression_is_read() {
    let home = Home::new("archives");
    let want = [
        "entry 1: ENCODING public.t, its line 1: SET client_encoding = 'UTF8'",
        "entry 3: TABLE public.t, its line 1: CREATE TABLE public.t (     a int, b text )",
        "entry 3: TABLE public.t, its line 5: ALTER TABLE \"public\".\"t\" OWNER TO \"me\"",
        "entry 4: TABLE DATA public.t, its line 1: COPY public.t (a, b) FROM stdin",
        "entry 2: ACL public.t, its line 1: GRANT SELECT ON t TO you",
    ];
    for version in [(1, 12), (1, 13), (1, 14), (1, 15), (1, 16)] {
        for int_size in [4, 8] {
            for packed in [Packed::Plain, Packed::Zlib, Packed::Lz4, Packed::Zstd] {
                if version.1 < 15 && matches!(packed, Packed::Lz4 | Packed::Zstd) {
                    continue;
                }
                for told in [true, false] {
                    let content = archive(version, int_size, packed, told);
                    let (statements, data) = home.read(&content).unwrap();
                    assert_eq!(statements, want, "{version:?} {int_size} {packed:?} {told}");
                    assert_eq!(data, 9_000, "{version:?} {int_size} {packed:?} {told}");
                }
            }
        }
    }
    let newer = archive((1, 17), 4, Packed::Plain, true);
    let e = home.read(&newer).unwrap_err();
    assert!(e.message().contains("version 1.17") && e.message().contains("\"dump\""), "{e:?}");
}

/// No panic, no endless loop, no memory for lengths that are damage; errors name the file.
#[test]
fn damaged_archives_are_errors() {
    let home = Home::new("damaged-archives");
    let given = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let rounds = given("BRAID_SEEDS").unwrap_or(300);
    let mut failed = 0;
    for seed in 0..rounds {
        let random = &mut Random::seeded(seed);
        let packed = [Packed::Plain, Packed::Zlib, Packed::Lz4, Packed::Zstd];
        let packed = packed[random.below(4) as usize];
        let mut content = archive((1, 15), 4, packed, random.below(2) == 0);
        // Mostly where the structure is.
        let most = if random.below(3) == 0 { content.len() as u64 } else { 700 };
        for _ in 0..random.between(1, 5) {
            let at = random.below(most.min(content.len() as u64)) as usize;
            match random.below(4) {
                0 => content.truncate(at.max(5)),
                1 => content[at] = random.next_u64() as u8,
                2 => content[at] ^= 1 << random.below(8),
                _ => drop(content.drain(at..(at + 3).min(content.len()))),
            }
        }
        if let Err(e) = home.read(&content) {
            let told = format!("{} {}", e.message(), e.detail().unwrap_or_default());
            assert!(told.contains("\"dump\""), "seed {seed}: {e:?} names no file");
            assert!(!e.state().0.starts_with("XX"), "seed {seed}: {e:?}");
            failed += 1;
        }
    }
    assert!(failed > rounds / 4, "{failed}");
}
