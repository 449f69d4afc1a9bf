//! Streams as a whole: recorded ones of real CLIs (`tests/fixtures/streams`), and made ones for what went wrong
//! elsewhere.

use proptest::prelude::*;

use super::*;
use crate::agent::event::Usage;
use crate::agent::judge::{Evidence, Exit, Judgement, judge};
use crate::agent::metrics::Metrics;

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/fixtures/streams/claude-2.1.332-",
            $name,
            ".jsonl"
        ))
    };
}

/// Everything that a stream gives.
#[derive(Debug, PartialEq)]
struct Seen {
    events: Vec<Event>,
    stats: Stats,
    metrics: Metrics,
    evidence: Evidence,
}

impl Seen {
    fn judged(&self, exit: Exit) -> Judgement {
        judge(&Evidence { exit, ..self.evidence.clone() })
    }

    fn count(&self, what: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|e| what(e)).count()
    }

    fn text(&self) -> String {
        self.events
            .iter()
            .filter_map(|e| match e {
                Event::Text { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }
}

fn decode<'a>(format: Format, chunks: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    run(Decoder::new(format), chunks)
}

fn run<'a>(mut decoder: Decoder, chunks: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.push(chunk, &mut |e| events.push(e));
    }
    decoder.finish(&mut |e| events.push(e));
    let (mut metrics, mut evidence) = (Metrics::default(), Evidence::new());
    for event in &events {
        metrics.observe(event);
        evidence.observe(event);
    }
    evidence.stream = decoder.stats();
    Seen { events, stats: decoder.stats(), metrics, evidence }
}

fn claude(bytes: &[u8]) -> Seen {
    decode(Format::StreamJson, [bytes])
}

const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"ok"}"#;

#[test]
fn a_real_edit_run() {
    let seen = claude(fixture!("edit"));
    let usage = Usage { input: 4600, output: 200, cache_creation: 300, cache_read: 200 };
    assert_eq!(seen.metrics.tokens, usage);
    assert_eq!((seen.metrics.turns, seen.metrics.tool_calls, seen.metrics.tool_errors), (5, 4, 0));
    assert_eq!(seen.metrics.model.as_deref(), Some("claude-opus-5-5"));
    assert_eq!(seen.metrics.agent_version.as_deref(), Some("2.1.332"));
    assert!(seen.metrics.session.is_some());
    // To the last digit, also once it is written again.
    let cost = serde_json::to_string(&seen.metrics.cost_usd).unwrap();
    assert!(
        String::from_utf8_lossy(fixture!("edit")).contains(&format!("\"total_cost_usd\":{cost},")),
        "{cost}"
    );
    assert_eq!(seen.text(), "I read the file first.Done: the greeting is wider now. — é漢😀");
    assert!(seen.events.contains(&Event::ToolUse {
        name: "Edit".into(),
        summary: "/sandbox/workspace/my repo/hello.txt".into(),
        id: "toolu_stub_002_00".into(),
    }));
    assert_eq!(seen.count(|e| matches!(e, Event::ToolResult { .. })), 4);
    assert_eq!(seen.judged(Exit::Status(0)), Judgement::Success);
    assert_eq!((seen.stats.malformed, seen.stats.partial_tail), (0, false));
}

#[test]
fn a_killed_run_keeps_what_was_counted() {
    let whole = fixture!("partial");
    let cut = &whole[..whole.len() * 3 / 4];
    let seen = claude(cut);
    assert!(seen.metrics.tokens.output >= 180 && seen.metrics.tokens.input >= 3300, "{:?}", seen.metrics);
    assert!((3..=4).contains(&seen.metrics.turns));
    assert!(seen.stats.partial_tail);
    let judgement = seen.judged(Exit::Signal(9));
    assert!(
        matches!(&judgement, Judgement::Incomplete(r) if r.contains("middle of a line")),
        "{judgement:?}"
    );
}

#[test]
fn partial_messages_count_as_often_as_whole_ones() {
    let (whole, partial) = (claude(fixture!("edit")), claude(fixture!("partial")));
    assert_eq!(whole.text(), partial.text());
    let same = |m: &Metrics| (m.turns, m.tokens, m.tool_calls, m.cost_usd);
    assert_eq!(same(&whole.metrics), same(&partial.metrics));
    // Before the result as well: only output tokens are finer with pieces.
    for seen in [&whole, &partial] {
        let mut sum = Usage::default();
        for event in &seen.events {
            if let Event::Tokens(usage) = event {
                sum.add(usage);
            }
        }
        assert_eq!((sum.input, sum.cache_creation, sum.cache_read), (4600, 300, 200));
        assert_eq!(seen.count(|e| *e == Event::Turn), 4);
        assert_eq!(seen.count(|e| matches!(e, Event::ToolUse { .. })), 4);
    }
    let output: u64 =
        partial.events.iter().map(|e| if let Event::Tokens(u) = e { u.output } else { 0 }).sum();
    assert_eq!(output, 200);
}

#[test]
fn real_failures_are_judged() {
    let cases: [(&[u8], Judgement); 5] = [
        (
            fixture!("api-401"),
            Judgement::Failed("the agent reports an error: Invalid API key · Fix external API key".into()),
        ),
        (
            fixture!("max-turns"),
            Judgement::MaxTurns(
                "the agent reached its turn limit: Reached maximum number of turns (2)".into(),
            ),
        ),
        (
            fixture!("budget"),
            Judgement::Budget("the agent reached its cost limit: Reached maximum budget ($0.001)".into()),
        ),
        (fixture!("api-retry"), Judgement::Success),
        (fixture!("permission-denied"), Judgement::Success),
    ];
    for (bytes, expected) in cases {
        let seen = claude(bytes);
        for exit in [Exit::Status(0), Exit::Status(1)] {
            assert_eq!(seen.judged(exit), expected);
        }
        assert_eq!(seen.stats.malformed, 0);
    }
    let overflow = claude(fixture!("context-overflow")).judged(Exit::Status(1));
    assert!(overflow.reason().is_some_and(|r| r.contains("Prompt is too long")), "{overflow:?}");
    assert_eq!(claude(fixture!("api-401")).text(), "", "what the CLI says itself is no text of the model");
}

#[test]
fn retries_and_denials_are_counted_once() {
    let seen = claude(fixture!("api-retry"));
    assert_eq!(seen.metrics.api_retries, 2);
    let first = Event::Retry { attempt: 1, max: 10, delay_ms: 621, error: "overloaded (HTTP 529)".into() };
    assert_eq!(seen.events.iter().find(|e| matches!(e, Event::Retry { .. })), Some(&first));
    // Each is told when it happens, and again in the result.
    assert_eq!(claude(fixture!("permission-denied")).metrics.permission_denials, 3);
    assert_eq!(claude(fixture!("budget")).metrics.tokens.input, 1000, "a result of zeros erases nothing");
}

#[test]
fn huge_lines_do_not_break_the_stream() {
    let mut decoder = Decoder::new(Format::StreamJson);
    let mut events = Vec::new();
    let block = vec![b'x'; 1024 * 1024];
    for mib in [3, 70, 9] {
        decoder.push(
            br#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":""#,
            &mut |e| {
                events.push(e);
            },
        );
        for _ in 0..mib {
            decoder.push(&block, &mut |e| events.push(e));
        }
        decoder.push(b"\"}]}}\n", &mut |e| events.push(e));
    }
    decoder.push(format!("{RESULT}\n").as_bytes(), &mut |e| events.push(e));
    decoder.finish(&mut |e| events.push(e));
    assert_eq!((decoder.stats().lines, decoder.stats().oversized), (4, 2));
    let kinds: Vec<_> = events.iter().map(std::mem::discriminant).collect();
    assert_eq!(kinds.len(), 3, "{events:?}");
    assert!(matches!(&events[0], Event::ToolResult { id, .. } if id == "t"));
    assert!(matches!(&events[1], Event::Warning { message } if message.contains("8 MiB")));
    assert!(matches!(&events[2], Event::Result(_)));
}

#[test]
fn what_cannot_be_parsed_is_counted_and_the_rest_goes_on() {
    let junk = "not json\n{\"type\":\"assistant\",\"message\":\n[1,2]\n\"text\"\n{}\n";
    let seen = claude(format!("{junk}{}\n{RESULT}\n", "y".repeat(5 * 1024 * 1024)).as_bytes());
    assert_eq!(seen.stats.malformed, 3);
    assert_eq!(seen.count(|e| matches!(e, Event::Warning { .. })), 1);
    assert_eq!(seen.judged(Exit::Status(0)), Judgement::Success);
}

#[test]
fn an_unfinished_result_is_no_result() {
    for tail in [&RESULT[..RESULT.len() - 1], RESULT] {
        let seen = claude(format!("{{\"type\":\"system\"}}\n{tail}").as_bytes());
        assert!(seen.stats.partial_tail && seen.events.is_empty());
        assert!(matches!(seen.judged(Exit::Status(0)), Judgement::Incomplete(_)));
    }
}

#[test]
fn broken_text_encoding_is_tolerated() {
    let line = |text: &[u8]| {
        [br#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":""#, text, b"\"}]}}\n"]
            .concat()
    };
    let cases: [(&[u8], &str); 4] = [
        ("é漢😀".as_bytes(), "é漢😀"),
        (b"a\xffb", "a\u{fffd}b"),
        (br"a\ud800b", "a\u{fffd}b"),
        (br"\ud83d\ude00", "😀"),
    ];
    for (text, expected) in cases {
        for format in [Format::StreamJson, Format::Auto] {
            let bytes = line(text);
            let seen = decode(format, bytes.chunks(1));
            assert_eq!((seen.text().as_str(), seen.stats.malformed), (expected, 0));
        }
    }
}

#[test]
fn other_shapes_of_the_same_thing() {
    // Content beside the message, no init, no ids; a second init; a sub-agent.
    let lines = [
        r#"{ "type": "assistant", "content": [{"type":"tool_use","name":"Bash","id":"","input":{"command":"ls"}}], "message": {"model":"m1"} }"#,
        r#"{"type":"system","subtype":"init","model":"m2"}"#,
        r#"{"type":"assistant","parent_tool_use_id":"t1","message":{"id":"s","usage":{"input_tokens":7},"content":"hi"}}"#,
        r#"{"type":"assistant","message":"odd"}"#,
        r#"{"type":"stream_event","event":{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}}"#,
        r#"{"type":"result","subtype":"success","is_error":true}"#,
    ];
    let seen = claude((lines.join("\r\n") + "\n").as_bytes());
    assert_eq!(seen.metrics.model.as_deref(), Some("m1"));
    assert_eq!((seen.metrics.turns, seen.metrics.tokens.input, seen.metrics.tool_calls), (2, 7, 1));
    assert_eq!(
        seen.judged(Exit::Status(0)),
        Judgement::Failed("the agent reports an error: Overloaded".into())
    );
}

#[test]
fn a_script_is_text_unless_it_speaks_json() {
    let text = decode(Format::Auto, [&b"\nhello\r\n{\"type\":\"result\"}\n\nno newline"[..]]);
    assert_eq!(text.stats.stream_json, Some(false));
    assert_eq!(text.text(), "hello{\"type\":\"result\"}no newline");
    assert_eq!(text.judged(Exit::Status(0)), Judgement::Success);

    let json = decode(Format::Auto, [&b"\n"[..], fixture!("edit")]);
    assert_eq!(json.metrics, claude(fixture!("edit")).metrics);

    let silent = decode(Format::Auto, [&b""[..]]);
    assert_eq!((silent.stats.stream_json, silent.events.len()), (None, 0));
    assert_eq!(silent.judged(Exit::Status(0)), Judgement::Success);

    let half = decode(Format::Auto, [&br#"{"type":"system""#[..]]);
    assert!(half.stats.partial_tail && half.events.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cuts_do_not_matter(cuts in prop::collection::vec(0usize..30_000, 0..20)) {
        for bytes in [&fixture!("partial")[..], fixture!("permission-denied")] {
            let mut cuts: Vec<_> = cuts.iter().map(|c| (*c).min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut from = 0;
            let chunks = cuts.into_iter().chain([bytes.len()]).map(|cut| {
                let chunk = &bytes[from..cut];
                from = cut;
                chunk
            });
            prop_assert_eq!(decode(Format::Auto, chunks), decode(Format::Auto, [bytes]));
        }
    }

    #[test]
    fn cuts_do_not_matter_to_any_recorded_stream(at in any::<prop::sample::Index>(), size in 1_usize..4000) {
        let all = recorded();
        let (name, bytes) = &all[at.index(all.len())];
        prop_assert_eq!(decode(Format::Auto, bytes.chunks(size)), decode(Format::Auto, [&bytes[..]]), "{}", name);
    }

    #[test]
    fn no_bytes_stop_the_decoder(noise in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..12_000) {
        let whole = fixture!("edit");
        let at = at.min(whole.len());
        let seen = decode(Format::StreamJson, [&whole[..at], &noise, b"\n", RESULT.as_bytes(), b"\n"]);
        prop_assert!(matches!(seen.events.last(), Some(Event::Result(r)) if r.text == "ok"));
    }
}

/// Every recorded stream.
fn recorded() -> Vec<(String, Vec<u8>)> {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/streams");
    let mut all: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .map(|path| (path.display().to_string(), std::fs::read(path).unwrap()))
        .collect();
    all.sort();
    assert!(all.len() > 20, "{}", all.len());
    all
}

#[test]
fn who_only_counts_gets_the_same_figures_and_the_same_verdict() {
    for (name, bytes) in recorded() {
        // Whole, and as a run leaves it that was killed in the middle.
        for bytes in [&bytes[..], &bytes[..bytes.len() / 2]] {
            let (full, counted) =
                (decode(Format::Auto, [bytes]), run(Decoder::counting(Format::Auto), [bytes]));
            let kinds = |seen: &Seen| seen.events.iter().map(std::mem::discriminant).collect::<Vec<_>>();
            assert_eq!(counted.metrics, full.metrics, "{name}");
            assert_eq!(counted.evidence, full.evidence, "{name}");
            assert_eq!(kinds(&counted), kinds(&full), "{name}");
            assert!(counted.text().is_empty());
        }
    }
}

#[test]
fn a_gap_costs_the_lines_that_it_cuts_and_no_other() {
    let text = br#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"one"}]}}"#;
    let mut decoder = Decoder::new(Format::StreamJson);
    let mut events = Vec::new();
    decoder.push(&[text, &b"\n"[..], &text[..30]].concat(), &mut |e| events.push(e));
    decoder.gap();
    decoder.push(&[&text[50..], &b"\n"[..], RESULT.as_bytes(), b"\n"].concat(), &mut |e| events.push(e));
    decoder.finish(&mut |e| events.push(e));
    assert_eq!((decoder.stats().lines, decoder.stats().malformed), (2, 1));
    assert!(matches!(&events[..], [Event::Turn, Event::Text { .. }, Event::Result(_)]), "{events:?}");
}

#[test]
fn inputs_of_tools_are_summed_up_wherever_they_stand() {
    // The input before the name, a field that is escaped, other types, more fields than are known.
    let tool = |input: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"input":{input},"name":"Bash","type":"tool_use","id":""}}]}}}}"#
        )
    };
    let lines = [
        tool(r#"{"command":"echo \"a\" \u00e9","deep":{"x":[1,{}]}}"#),
        tool("[1]"),
        tool("7"),
        tool(r#"{"command":["x"]}"#),
        tool("null"),
    ];
    let seen = claude((lines.join("\n") + "\n").as_bytes());
    let shown: Vec<_> = seen
        .events
        .iter()
        .filter_map(|e| match e {
            Event::ToolUse { summary, .. } => Some(summary.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(shown, ["echo \"a\" é", "", "", "", ""]);
    assert_eq!(seen.stats.malformed, 0);
}

/// Streams of the other CLIs.
const OTHERS: [(Format, &[u8]); 2] = [
    (
        Format::Codex,
        include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/fixtures/streams/codex-0.171.0-edit.jsonl"
        )),
    ),
    (
        Format::Opencode,
        include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/fixtures/streams/opencode-1.18.33-retry.jsonl"
        )),
    ),
];

#[test]
fn other_streams_are_recognised_and_incomplete_without_their_last_line() {
    for (format, bytes) in OTHERS {
        let whole = decode(Format::Auto, [bytes]);
        assert_eq!(whole, decode(format, [bytes]));
        assert_eq!(whole.judged(Exit::Status(0)), Judgement::Success);
        let cut = decode(format, [&bytes[..bytes.len() - 2]]);
        assert!(cut.stats.partial_tail);
        assert!(matches!(cut.judged(Exit::Status(0)), Judgement::Incomplete(_)), "{format:?}");
    }
}

#[test]
fn other_streams_tolerate_what_they_do_not_know_and_count_nothing_twice() {
    for (format, bytes) in OTHERS {
        let whole = decode(format, [bytes]);
        let noise = b"{\"type\":\"of tomorrow\",\"part\":7,\"item\":[]}\nno JSON\n[]\n{\"type\":{}}\n";
        let seen = decode(format, [&noise[..], bytes]);
        assert_eq!((seen.metrics, seen.stats.malformed), (whole.metrics.clone(), 1), "{format:?}");
        // A tool or a part that is told of again.
        let doubled: Vec<u8> = bytes
            .split_inclusive(|b| *b == b'\n')
            .flat_map(|line| {
                let again = memchr::memmem::find(line, b"item.started").is_some()
                    || memchr::memmem::find(line, b"\"step_").is_some();
                std::iter::repeat_n(line, 1 + usize::from(again)).flatten().copied()
            })
            .collect();
        assert_eq!(decode(format, [&doubled[..]]).metrics, whole.metrics, "{format:?}");
    }
}

#[test]
fn more_work_after_a_result_takes_it_back() {
    let (_, bytes) = OTHERS[1];
    let line = b"{\"type\":\"step_start\",\"sessionID\":\"s\",\"part\":{\"id\":\"another\"}}\n";
    let seen = decode(Format::Opencode, [bytes, line]);
    assert!(matches!(seen.judged(Exit::Status(0)), Judgement::Incomplete(_)));
}
