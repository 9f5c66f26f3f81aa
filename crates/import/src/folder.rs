//! The one folder that files are read from, and what patterns mean below it.
//!
//! A path is taken below the folder, whether it is relative to it or absolute. Where links lead is
//! looked at before anything is opened: what lies outside is refused as if it were forbidden,
//! whether it exists or not, so that nobody learns what is there.

use std::path::{Component, Path, PathBuf};

use braid_env::fs::FileSystem;
use braid_types::{SqlError, SqlResult, SqlState};

/// A file to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// As messages call it: its path below the folder.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Bytes, as it lies on the disk.
    pub size: u64,
    /// When it was written last, in nanoseconds since 1970, if the file system knows.
    pub modified: u64,
}

/// See the [module documentation](self).
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder at a path, which need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Folder {
        Folder(path.into())
    }

    fn root(&self) -> SqlResult<PathBuf> {
        self.0.canonicalize().map_err(|e| {
            SqlError::new(
                SqlState("58P01"),
                format!("the folder for imports \"{}\" cannot be read: {e}", self.0.display()),
            )
            .with_hint("Make it, or start the node with --import-dir.")
        })
    }

    /// The files that a path or pattern with `*`, `?`, `[..]` means, by name.
    ///
    /// # Errors
    /// 42501 for what lies outside; 58P01 if there is nothing; 22023 for a pattern that is none;
    /// 0A000 for addresses of other machines.
    pub fn files(&self, pattern: &str) -> SqlResult<Vec<SourceFile>> {
        let root = self.root()?;
        let inside = self.inside(&root, pattern)?;
        let is_pattern = pattern.contains(['*', '?', '[']);
        let exact = inside.exists();
        let mut found = Vec::new();
        if is_pattern && !exact {
            let text = inside.to_str().ok_or_else(|| outside(pattern))?;
            let paths = glob::glob(text).map_err(|e| {
                let state = SqlState::INVALID_PARAMETER_VALUE;
                SqlError::new(state, format!("\"{pattern}\" is not a pattern of files: {e}"))
            })?;
            for path in paths {
                let path = path.map_err(|e| unreadable(pattern, e.error()))?;
                if path.is_file() {
                    found.push(source(&root, pattern, &path)?);
                }
            }
        } else {
            found.push(source(&root, pattern, &inside)?);
        }
        if found.is_empty() {
            return Err(SqlError::new(SqlState("58P01"), format!("no file matches \"{pattern}\""))
                .with_hint("Paths begin below the node's folder for imports."));
        }
        Ok(found)
    }

    /// Where a new file of this name would be.
    ///
    /// # Errors
    /// As [`Folder::files`]; 58P02 if there is something.
    pub fn new_file(&self, name: &str) -> SqlResult<PathBuf> {
        let root = self.root()?;
        let path = self.inside(&root, name)?;
        let folder = path.parent().and_then(|p| p.canonicalize().ok());
        match (folder, path.file_name()) {
            (Some(folder), Some(last)) if folder.starts_with(&root) => {
                let path = folder.join(last);
                if path.symlink_metadata().is_ok() {
                    let message = format!("file \"{name}\" exists already");
                    return Err(SqlError::new(SqlState("58P02"), message));
                }
                Ok(path)
            }
            _ => Err(outside(name)),
        }
    }

    /// Where a file of this name is written; one that is there is replaced.
    ///
    /// # Errors
    /// As [`Folder::new_file`], but for files that are there.
    pub fn written_file(&self, name: &str) -> SqlResult<PathBuf> {
        let root = self.root()?;
        let path = self.inside(&root, name)?;
        match path.symlink_metadata() {
            Err(_) => self.new_file(name),
            Ok(_) => source(&root, name, &path).map(|found| found.path),
        }
    }

    /// A folder below this one for files that are written, made if it is not there; and what
    /// statements call it.
    ///
    /// # Errors
    /// 42501 for what lies outside, be it behind a link; those of the disk.
    pub(crate) fn folder_for(
        &self,
        fs: &dyn FileSystem,
        name: &str,
    ) -> SqlResult<(PathBuf, String)> {
        let root = self.root()?;
        let name = name.trim_end_matches('/');
        // The folder itself may be meant.
        let path = match name {
            "" | "." => root.clone(),
            _ => self.inside(&root, name)?,
        };
        // Nothing is made behind a link that leads out.
        let there = path.ancestors().find_map(|p| p.canonicalize().ok());
        if !there.is_some_and(|there| there.starts_with(&root)) {
            return Err(outside(name));
        }
        let failed = |e: std::io::Error| {
            let message = format!("could not make folder \"{name}\": {e}");
            SqlError::new(SqlState::IO_ERROR, message)
        };
        fs.create_dir_all(&path).map_err(failed)?;
        let real = path.canonicalize().map_err(failed)?;
        if !real.starts_with(&root) {
            return Err(outside(name));
        }
        let shown = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        Ok((real, shown))
    }

    /// A path below the folder, as far as its text tells.
    fn inside(&self, root: &Path, pattern: &str) -> SqlResult<PathBuf> {
        let mut text = pattern;
        if let Some(rest) = pattern.strip_prefix("nodelocal://") {
            text = rest.split_once('/').map_or("", |(_, path)| path);
        } else if let Some((scheme, _)) = pattern.split_once("://") {
            return Err(SqlError::unsupported(format!("reading from {scheme}://")).with_hint(
                "Files are read from the node's folder for imports; see --import-dir.",
            ));
        }
        let path = Path::new(text);
        let relative = if path.is_absolute() {
            let below = path.strip_prefix(root).or_else(|_| path.strip_prefix(&self.0));
            below.map_err(|_| outside(pattern))?
        } else {
            path
        };
        let plain = |c: Component<'_>| matches!(c, Component::Normal(_) | Component::CurDir);
        if text.is_empty() || text.contains('\0') || !relative.components().all(plain) {
            return Err(outside(pattern));
        }
        Ok(root.join(relative))
    }
}

fn source(root: &Path, pattern: &str, path: &Path) -> SqlResult<SourceFile> {
    let real = match path.canonicalize() {
        Ok(real) if real.starts_with(root) => real,
        Ok(_) => return Err(outside(pattern)),
        Err(e) => return Err(unreadable(pattern, &e)),
    };
    let metadata = real.metadata().map_err(|e| unreadable(pattern, &e))?;
    if !metadata.is_file() {
        let state = SqlState::WRONG_OBJECT_TYPE;
        return Err(SqlError::new(state, format!("\"{pattern}\" is not a file")));
    }
    let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let modified = metadata.modified().ok();
    let modified = modified.and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
    let modified = modified.map_or(0, |t| u64::try_from(t.as_nanos()).unwrap_or(0));
    Ok(SourceFile { name, path: real, size: metadata.len(), modified })
}

fn outside(pattern: &str) -> SqlError {
    SqlError::new(
        SqlState::INSUFFICIENT_PRIVILEGE,
        format!("\"{pattern}\" is not below the node's folder for imports"),
    )
    .with_hint("The node's option --import-dir says which folder that is.")
}

fn unreadable(name: &str, e: &std::io::Error) -> SqlError {
    let state = match e.kind() {
        std::io::ErrorKind::NotFound => SqlState("58P01"),
        std::io::ErrorKind::PermissionDenied => SqlState::INSUFFICIENT_PRIVILEGE,
        _ => SqlState::IO_ERROR,
    };
    SqlError::new(state, format!("could not open file \"{name}\" for reading: {e}"))
}
