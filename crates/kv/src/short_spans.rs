//! Many short spans, read a request for many of them at a time: the look-ups of a join.
//!
//! ```text
//!   [k1, k1+) [k4, k4+) [k9, k9+) ..      one request, one scan that leaps from span to span
//! ```
//! A [`TxnScan`](crate::TxnScan) for each of them would take as long as their rows: it is kept in a
//! list, lays own writes over, remembers where it is. Here nothing of that is needed: the
//! transaction has written nothing, and whoever asks takes all that is answered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use braid_lsm::{KeySpan, RowBatch};

use crate::error::KvResult;
use crate::scan::{ReadMode, ScanOptions, jumped_over};
use crate::spans::{SpanRows, SpanScan};
use crate::txn::Txn;

impl Txn {
    /// Whether [`Txn::read_spans`] can be asked: the far side is asked for many things at once, and
    /// tells all that there is.
    pub fn reads_spans(&self, options: &ScanOptions) -> bool {
        let plain = !options.reverse && options.mode != ReadMode::Latest && options.limit.is_none();
        plain && self.batch_max() > 1 && self.is_clean()
    }

    /// Reads the first `spans` of the spans that are left, in their order, and takes them off; at
    /// most `rows` rows or a few more. Of a span that has more, the rest is the first that is left.
    ///
    /// All that is given back counts as read.
    pub fn read_spans(
        &self,
        left: &mut VecDeque<KeySpan>,
        options: &ScanOptions,
        (spans, rows): (usize, usize),
    ) -> KvResult<Vec<Arc<RowBatch>>> {
        let spans = spans.min(self.batch_max()).min(left.len());
        let scan = |span: KeySpan| SpanScan { span, rows, more: false, cursor: None };
        let asked: Vec<SpanScan> = left.drain(..spans).map(scan).collect();
        let at = self.open_state()?.read_at(options.mode);
        let answer = self.ask_scans(asked.clone(), at, options)?;
        let mut found = Vec::new();
        let mut parts = asked.into_iter().zip(answer.parts);
        for (SpanScan { span, .. }, part) in parts.by_ref() {
            let SpanRows { rows, rest, .. } = part;
            self.note_read(span, &rows, rest.as_ref(), options)?;
            if !rows.is_empty() {
                self.counts.rows_scanned.fetch_add(rows.len() as u64, Ordering::Relaxed);
                found.push(rows);
            }
            if let Some(rest) = rest {
                // Rows behind it come when it is read to its end.
                let behind: Vec<KeySpan> = parts.map(|(asked, _)| asked.span).collect();
                behind.into_iter().rev().for_each(|span| left.push_front(span));
                left.push_front(rest);
                break;
            }
        }
        Ok(found)
    }

    /// A span was read up to its rest. The insides of rows that are jumped over were not.
    fn note_read(
        &self,
        mut span: KeySpan,
        rows: &RowBatch,
        rest: Option<&KeySpan>,
        options: &ScanOptions,
    ) -> KvResult<()> {
        if !self.is_validated(options.mode) {
            return Ok(());
        }
        if let Some(rest) = rest {
            span.end = rest.start.clone();
        }
        let mut read = Vec::new();
        if let Some((classes, suffix)) = options.jump {
            let all = options.classes & !classes == 0;
            let class_of = self.coordinator().row_class();
            let jumps = |key: &[u8]| all || classes & (1 << class_of(key)) != 0;
            read = jumped_over(&mut span, rows.iter().map(|(key, ..)| key), jumps, suffix).0;
        }
        read.push(span);
        read.retain(|span| !span.is_empty());
        self.record_spans_read(read);
        self.open_state()?.count_reads()
    }
}
