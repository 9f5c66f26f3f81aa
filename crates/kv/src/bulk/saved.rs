//! Loads that go on in another process: which files hold what was put so far.
//!
//! | bytes | meaning |
//! |---|---|
//! | u32 | number of cuts; then each |
//! | for each file: u8 | 0 a sorted run, 1 an sst, 2 a part |
//! | u32, u32, u64 | target, part, length of the file |
//! | 3 texts | name, first key and end of an sst's span |
//!
//! A text is its length as u32, and its bytes; all numbers are little endian.

use std::sync::Arc;

use braid_lsm::KeySpan;

use super::io_error;
use super::load::BulkLoad;
use super::piece::Piece;
use super::run::Run;
use super::sst::Sst;
use crate::error::KvResult;

/// One file of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SavedFile {
    form: u8,
    target: u32,
    part: u32,
    len: u64,
    name: String,
    span: (Vec<u8>, Vec<u8>),
}

const RUN: u8 = 0;
const SST: u8 = 1;
const PART: u8 = 2;

/// What a load has on disk: everything that was put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedLoad {
    cuts: Vec<Vec<u8>>,
    files: Vec<SavedFile>,
}

impl SavedLoad {
    /// Whether it needs a file.
    pub fn needs(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.name == name)
    }

    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        fn text(out: &mut Vec<u8>, text: &[u8]) {
            out.extend_from_slice(&(text.len() as u32).to_le_bytes());
            out.extend_from_slice(text);
        }
        let mut out = (self.cuts.len() as u32).to_le_bytes().to_vec();
        self.cuts.iter().for_each(|cut| text(&mut out, cut));
        for file in &self.files {
            out.push(file.form);
            out.extend_from_slice(&file.target.to_le_bytes());
            out.extend_from_slice(&file.part.to_le_bytes());
            out.extend_from_slice(&file.len.to_le_bytes());
            text(&mut out, file.name.as_bytes());
            text(&mut out, &file.span.0);
            text(&mut out, &file.span.1);
        }
        out
    }

    /// From its bytes; `None` for others.
    pub fn decode(mut bytes: &[u8]) -> Option<SavedLoad> {
        fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
            let (head, rest) = bytes.split_first_chunk::<N>()?;
            *bytes = rest;
            Some(*head)
        }
        fn text(bytes: &mut &[u8]) -> Option<Vec<u8>> {
            let len = u32::from_le_bytes(take(bytes)?) as usize;
            let (text, rest) = bytes.split_at_checked(len)?;
            *bytes = rest;
            Some(text.to_vec())
        }
        let bytes = &mut bytes;
        let mut out = SavedLoad::default();
        for _ in 0..u32::from_le_bytes(take(bytes)?) {
            out.cuts.push(text(bytes)?);
        }
        while !bytes.is_empty() {
            let [form] = take(bytes)?;
            out.files.push(SavedFile {
                form,
                target: u32::from_le_bytes(take(bytes)?),
                part: u32::from_le_bytes(take(bytes)?),
                len: u64::from_le_bytes(take(bytes)?),
                name: String::from_utf8(text(bytes)?).ok()?,
                span: (text(bytes)?, text(bytes)?),
            });
        }
        Some(out)
    }
}

impl BulkLoad {
    /// Brings everything to the disk; durable when it returns.
    pub fn save(&mut self) -> KvResult<SavedLoad> {
        if self.scatters.is_empty() {
            for target in 0..self.looked_at.len() {
                if !self.buffers[target].1.is_empty() {
                    self.spill(target)?;
                }
            }
        }
        self.scatters.iter_mut().try_for_each(|scatter| scatter.end())?;
        let mut out = SavedLoad::default();
        if let Some(first) = self.scatters.first() {
            out.cuts.clone_from(first.cuts());
        }
        let name = |path: &std::path::Path| {
            path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let none = || (Vec::new(), Vec::new());
        for (target, piece) in &mut self.pieces {
            let (part, target) = (0, *target as u32);
            out.files.push(match piece {
                Piece::Run(run) => {
                    run.keep()?;
                    let (name, len) = (name(run.path()), run.byte_len());
                    SavedFile { form: RUN, target, part, len, name, span: none() }
                }
                Piece::Sst(sst) => {
                    sst.keep();
                    let span = (sst.span.start.to_vec(), sst.span.end.to_vec());
                    let (name, len) = (name(&sst.path), sst.bytes);
                    SavedFile { form: SST, target, part, len, name, span }
                }
            });
        }
        for (part, target, run) in self.scatters.iter_mut().flat_map(|s| s.files_mut()) {
            run.keep()?;
            let (name, len, span) = (name(run.path()), run.byte_len(), none());
            let (target, part) = (*target as u32, *part as u32);
            out.files.push(SavedFile { form: PART, target, part, len, name, span });
        }
        if !out.files.is_empty() {
            self.folder.sync()?;
        }
        Ok(out)
    }

    /// Takes up what an earlier process saved, of a load with the same targets.
    ///
    /// # Errors
    /// A file is gone, or not as it was.
    pub fn restore(&mut self, saved: &SavedLoad) -> KvResult<()> {
        let is_cut = saved.files.iter().any(|file| file.form == PART);
        if (is_cut || !saved.cuts.is_empty()) && self.scatters.is_empty() {
            self.scatters = vec![self.scatter(&Arc::new(saved.cuts.clone()))];
        }
        for file in &saved.files {
            let (target, part) = (file.target as usize, file.part as usize);
            let path = self.folder.path_of(&file.name);
            if target >= self.looked_at.len() || part > saved.cuts.len() {
                let reason = "no such target or part".to_string();
                return Err(braid_lsm::Error::Corruption { file: path, offset: 0, reason }.into());
            }
            let (fs, stays) = (&self.folder.fs, &self.stays);
            match file.form {
                RUN => {
                    let run = Run::again(fs, stays, path, (file.len, true))?;
                    self.pieces.push((target, Piece::Run(run)));
                }
                SST => {
                    let (start, end) = file.span.clone();
                    let facts = (KeySpan::new(start, end), file.len);
                    let sst = Sst::again(&self.folder, stays, path, facts)?;
                    self.pieces.push((target, Piece::Sst(sst)));
                }
                PART => {
                    let run = Run::again(fs, stays, path, (file.len, false))?;
                    self.scatters[0].take(part, target, run);
                }
                _ => {
                    let error = std::io::ErrorKind::InvalidData.into();
                    return Err(io_error(&path, &error));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_saved_is_read_back() {
        let file = |form, name: &str| SavedFile {
            form,
            target: 2,
            part: 1,
            len: 1 << 40,
            name: name.into(),
            span: (b"a".to_vec(), b"b\0".to_vec()),
        };
        let saved = SavedLoad {
            cuts: vec![b"k".to_vec(), Vec::new()],
            files: vec![file(RUN, "job-1-00000001.run"), file(SST, "x")],
        };
        let bytes = saved.encode();
        assert_eq!(SavedLoad::decode(&bytes), Some(saved.clone()));
        assert_eq!(SavedLoad::decode(&bytes[..bytes.len() - 1]), None);
        assert!(saved.needs("x") && !saved.needs("y"));
    }
}
