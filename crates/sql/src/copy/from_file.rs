//! COPY FROM a file of the node's folder for imports.

use braid_env::fs::{DiskFs, FileSystem};
use braid_import::SourceFile;
use braid_parser::{Copy, CopyOptions};
use braid_types::{SqlError, SqlResult, SqlState};

use super::load::{Loader, copied_table};
use super::raw_rows::RawRows;
use crate::runtime::copies::Copied;
use crate::session::Context;

/// Bytes read from a file at once.
const CHUNK: usize = 1 << 20;

/// Feeds a whole file.
fn read_file(
    path: &str,
    source: &SourceFile,
    mut feed: impl FnMut(&[u8]) -> SqlResult<()>,
) -> SqlResult<()> {
    let failed = |e: std::io::Error| {
        let state = match e.kind() {
            std::io::ErrorKind::NotFound => SqlState("58P01"),
            std::io::ErrorKind::PermissionDenied => SqlState::INSUFFICIENT_PRIVILEGE,
            _ => SqlState::IO_ERROR,
        };
        SqlError::new(state, format!("could not open file \"{path}\" for reading: {e}"))
    };
    let file = DiskFs.open(&source.path).map_err(failed)?;
    let mut buffer = vec![0; CHUNK];
    let mut offset = 0;
    loop {
        let n = file.read_at(&mut buffer, offset).map_err(failed)?;
        if n == 0 {
            return Ok(());
        }
        feed(&buffer[..n])?;
        offset += n as u64;
    }
}

/// The file of a COPY.
fn source_file(ctx: &Context, path: &str) -> SqlResult<SourceFile> {
    let mut files = ctx.db.import_folder()?.files(path)?;
    match (files.pop(), files.is_empty()) {
        (Some(source), true) => Ok(source),
        _ => {
            let message = format!("\"{path}\" is more than one file");
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
                .with_hint("IMPORT INTO reads several."))
        }
    }
}

/// Loads one file.
fn load_file(
    loader: &mut Loader,
    options: &CopyOptions,
    path: &str,
    source: &SourceFile,
) -> SqlResult<()> {
    let mut decoder = loader.decoder(options)?;
    let mut rows = RawRows::default();
    let name = format!("file \"{path}\"");
    let name_file = |e: SqlError| match (e.detail(), e.context()) {
        (Some(d), _) if d.contains(&name) => e,
        (Some(d), _) => {
            let detail = format!("{d}\n{name}");
            e.with_detail(detail)
        }
        (None, Some(_)) => e.with_detail(name.clone()),
        (None, None) => e,
    };
    read_file(path, source, |data| {
        loader.progress.add(Copied::Bytes, data.len() as u64);
        let fed = decoder.feed(data, &mut rows);
        loader.write(&mut rows)?;
        fed
    })
    .map_err(name_file)?;
    decoder.finish(&mut rows).and_then(|()| loader.write(&mut rows)).map_err(name_file)
}

/// COPY FROM a file of the node's folder for imports; the command tag.
pub(crate) fn copy_from_file(ctx: &Context, c: &Copy) -> SqlResult<String> {
    let table = copied_table(ctx, c)?;
    let path = c.file.as_deref().unwrap_or_default();
    let source = source_file(ctx, path)?;
    let mut loader = Loader::new(ctx, &table, c, Some(source.size))?;
    load_file(&mut loader, &c.options, path, &source)?;
    Ok(format!("COPY {}", loader.finish()?))
}
