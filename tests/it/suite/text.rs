//! The functions of `text.jq`, through jq itself.

use std::io::Write as _;
use std::process::{Command, Stdio};

fn clean(filter: &str, text: &str) -> String {
    let lib = concat!(env!("CARGO_MANIFEST_DIR"), "/harnesses/starter/scripts/lib");
    let mut jq = Command::new("jq")
        .args(["-L", lib, "-Rrsj", &format!("include \"text\"; {filter}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    jq.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let out = jq.wait_with_output().unwrap();
    assert!(out.status.success(), "{filter}");
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn ordinary_text_stays_as_it_is() {
    for text in [
        "The function `f(a, b)` in src/a.rs:12 returns Vec<T>.\n\n- one\n- two\n\n```c\nint *p; /* x */\n```",
        "Grüße, 你好, سلام, 👩‍👩‍👧 and mail to ann@example.com",
        "See #12 and !34; it fixes the crash. a/b/c and https://example.com/x?y=1#z",
        "name@version",
        "a < b && b > c",
    ] {
        assert_eq!(clean("safe_text(1000)", text), text);
    }
}

#[test]
fn commands_and_calls_are_taken_out() {
    for (text, expected) in [
        ("@ann look", "@\u{200b}ann look"),
        ("(@org/team)", "(@\u{200b}org/team)"),
        ("/merge", "\\/merge"),
        ("text\n > /close\n- /label ~x", "text\n > \\/close\n- \\/label ~x"),
        ("Fixes #1", "Fixes → #1"),
        ("FIXED:  acme/widget#1", "FIXED → acme/widget#1"),
        ("Closing !5, implements https://x/1", "Closing → !5, implements → https://x/1"),
        ("[ci skip] [Skip CI]", "(ci skip) (Skip CI)"),
        ("<!-- hidden -->", "&lt;!-- hidden -->"),
        ("![a](b) <IMG src=x>", "[a](b) &lt;IMG src=x>"),
        ("a\u{1b}[31mb\u{202e}c\u{200b}d\u{e0041}e\r\nf", "a[31mbcde\nf"),
    ] {
        assert_eq!(clean("safe_text(1000)", text), expected, "{text:?}");
    }
    assert_eq!(clean("safe_text(3)", "abcdef"), "abc\n\n(cut here)");
    assert_eq!(clean("safe_line(20)", " /close\nall  of it, which is long"), "close all of it, wh");
    assert_eq!(clean("safe_message(100)", "Do\n\nCo-authored-by: A <a@b.c>\nSigned-off-by: B"), "Do\n");
    assert_eq!(clean("code", "a`b\nc"), "`a b c`");
}
