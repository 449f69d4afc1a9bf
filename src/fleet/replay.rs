//! Recorded streams once more: shown, and judged anew. Nothing but the files is needed.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::rundir;
use crate::agent::render::{Renderer, ShowAgent};
use crate::agent::{Decoder, Event, Evidence, Exit, Format, Judgement, Metrics, Stats, Usage, judge};
use crate::error::{Code, Error, Result};
use crate::report::Printer;

/// How much is read at once, in bytes.
const CHUNK: usize = 256 * 1024;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Whose stream it is; none leaves it to the first line.
    pub format: Option<Format>,
    /// How the program of a bare stream ended.
    pub exit: Exit,
    /// What is shown.
    pub show: ShowAgent,
}

/// One iteration, judged anew.
#[derive(Debug, Serialize)]
pub(crate) struct Replayed {
    /// The stream.
    pub stream: PathBuf,
    /// How the program ended.
    pub exit: Exit,
    /// What that means.
    pub judgement: Judgement,
    /// The code of a failure.
    pub code: Option<Code>,
    /// The figures.
    pub metrics: Metrics,
    /// What was seen of the stream.
    pub stats: Stats,
}

/// How fast a stream was decoded.
#[derive(Debug, Serialize)]
pub(crate) struct Speed {
    /// Bytes of the stream.
    pub bytes: u64,
    /// Events in it.
    pub events: u64,
    /// Wall time, in seconds.
    pub seconds: f64,
    /// Millions of bytes in a second.
    pub mb_per_s: f64,
    /// The most memory that this process had, in kibibytes; where the system tells.
    pub peak_rss_kib: Option<u64>,
}

/// The part of `run.json` that is needed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Record {
    iterations: Vec<Iteration>,
}

#[derive(Debug, Deserialize)]
struct Iteration {
    dir: String,
    exit: Exit,
    #[serde(default)]
    resumed: Option<String>,
}

impl Replayed {
    /// The judgement as the error of a run.
    pub(crate) fn error(&self) -> Option<Error> {
        let reason = self.judgement.reason()?;
        Some(Error::new(self.code?, reason).help(format!("{} has the whole story", self.stream.display())))
    }
}

/// Replays a run directory or a stream.
pub(crate) fn replay(path: &Path, wanted: &Wanted, ui: Option<&Printer>) -> Result<Vec<Replayed>> {
    if !path.is_dir() {
        return Ok(vec![one(path, wanted.exit, Usage::default(), wanted, ui)?]);
    }
    let text = fs_err::read(path.join("run.json")).map_err(|e| {
        Error::new(Code::RunUnknown, format!("{} is no run directory: {e}", path.display()))
            .help("name a run directory with a `run.json`, or a stream")
    })?;
    let record: Record = serde_json::from_slice(&text).map_err(|e| {
        Error::new(Code::RunUnknown, format!("{}/run.json cannot be read: {e}", path.display()))
            .help("name a stream of the run, e.g. `iteration-1/stream.jsonl`, with `--exit`")
    })?;
    let mut out: Vec<Replayed> = Vec::new();
    for iteration in &record.iterations {
        // The directory's name is a single one, whatever the file says.
        let Some(name) = Path::new(&iteration.dir).file_name() else { continue };
        let earlier = out.iter().map(|r| &r.metrics);
        let before = iteration.resumed.as_ref().map(|session| Metrics::tokens_of(earlier, session));
        let stream = path.join(name).join("stream.jsonl");
        out.push(one(&stream, iteration.exit, before.unwrap_or_default(), wanted, ui)?);
    }
    if out.is_empty() {
        let what = format!("the agent of the run in {} was never started", path.display());
        return Err(Error::new(Code::RunUnknown, what).help("its `run.json` says why"));
    }
    Ok(out)
}

fn one(stream: &Path, exit: Exit, before: Usage, wanted: &Wanted, ui: Option<&Printer>) -> Result<Replayed> {
    let mut renderer = Renderer::new();
    let mut evidence = Evidence::new();
    let mut metrics = Metrics::default();
    let mut decoder = Decoder::resuming(wanted.format.unwrap_or(Format::Auto), before);
    let mut file = open(stream)?;
    let mut chunk = vec![0; CHUNK];
    loop {
        let n = file.read(&mut chunk).map_err(|e| Error::io("cannot read the stream", &e))?;
        let plain = decoder.is_text();
        let mut sink = |event: Event| {
            metrics.observe(&event);
            evidence.observe(&event);
            let lines = ui.map(|_| renderer.event(&event)).unwrap_or_default();
            for line in lines.iter().filter(|line| wanted.show.shows(line.kind, plain)) {
                ui.inspect(|ui| ui.quote(&line.text));
            }
        };
        if n == 0 {
            decoder.finish(&mut sink);
            break;
        }
        decoder.push(&chunk[..n], &mut sink);
    }
    for line in renderer.finish().iter().filter(|l| wanted.show.shows(l.kind, decoder.is_text())) {
        ui.inspect(|ui| ui.quote(&line.text));
    }
    evidence.exit = exit;
    evidence.stream = decoder.stats();
    let judgement = judge(&evidence);
    if let Some(ui) = ui {
        let word = judgement.code().map_or("success", Code::as_str);
        ui.closing("verdict", word);
        judgement.reason().inspect(|reason| ui.closing("reason", reason));
    }
    let (code, stats) = (judgement.code(), decoder.stats());
    Ok(Replayed { stream: stream.to_owned(), exit, judgement, code, metrics, stats })
}

/// Decodes and counts, and takes the time.
pub(crate) fn measure(stream: &Path, wanted: &Wanted) -> Result<Speed> {
    let mut file = open(stream)?;
    let mut decoder = Decoder::new(wanted.format.unwrap_or(Format::Auto));
    let (mut metrics, mut evidence, mut events) = (Metrics::default(), Evidence::new(), 0);
    let mut chunk = vec![0; CHUNK];
    let start = Instant::now();
    loop {
        let n = file.read(&mut chunk).map_err(|e| Error::io("cannot read the stream", &e))?;
        let mut sink = |event: Event| {
            events += 1;
            metrics.observe(&event);
            evidence.observe(&event);
        };
        if n == 0 {
            decoder.finish(&mut sink);
            break;
        }
        decoder.push(&chunk[..n], &mut sink);
    }
    let seconds = start.elapsed().max(Duration::from_micros(1)).as_secs_f64();
    let bytes = decoder.stats().bytes;
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let mb_per_s = bytes as f64 / seconds / 1e6;
    Ok(Speed { bytes, events, seconds, mb_per_s, peak_rss_kib: peak_rss() })
}

fn open(stream: &Path) -> Result<File> {
    rundir::open_plain(stream).map_err(|e| {
        Error::new(Code::RunUnknown, format!("the stream {} cannot be read: {e}", stream.display()))
            .help("name a run directory or a stream")
    })
}

/// `VmHWM` of proc(5).
fn peak_rss() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
