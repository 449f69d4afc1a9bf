//! A secret of the run in what came back.

use super::*;
use crate::error::Code;
use crate::secrets::Secret;

const VALUE: &str = "s3cr3t/value+0123456789";

fn registry() -> Registry {
    let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----\n";
    Registry::new([&Secret::new(VALUE), &Secret::new(key)])
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn commit_all(t: &Trip<'_>, message: &str) {
    t.git(&["add", "-A"]);
    t.git(&["commit", "-q", "-m", message]);
}

#[tokio::test]
async fn it_is_found_wherever_new_content_can_hold_it() {
    type Make = fn(&Trip<'_>);
    let cases: &[(&str, &str, Make)] = &[
        ("a file", "the file new", |t| write(&t.top, b"new", format!("x {VALUE}\n"))),
        ("base64", "the file a", |t| write(&t.top, b"a", base64(&format!("?{VALUE}")))),
        ("wrapped base64", "the file a", |t| {
            let text = base64(&format!("{} {VALUE}", "x".repeat(40)));
            let lines: Vec<_> = text.as_bytes().chunks(64).map(|l| String::from_utf8_lossy(l)).collect();
            write(&t.top, b"a", lines.join("\n"));
        }),
        ("a line of a key", "the file k", |t| write(&t.top, b"k", "  AQEFAASCBKcwggSjAgEAAoIB\n")),
        ("a file's name", "the name or link", |t| write(&t.top, b"s3cr3t/value+0123456789", "x")),
        ("a link", "the name or link", |t| link(&t.top, "l", VALUE)),
        ("a commit that a later one takes back", "the blob", |t| {
            write(&t.top, b"a", VALUE);
            commit_all(t, "with");
            write(&t.top, b"a", "without\n");
            commit_all(t, "without");
        }),
        ("a pack", "the blob", |t| {
            write(&t.top, b"a", VALUE);
            commit_all(t, "with");
            std::fs::remove_file(t.top.join("a")).unwrap();
            commit_all(t, "without");
            t.git(&["gc", "-q"]);
        }),
        ("a message", "the commit", |t| {
            t.git(&["commit", "-q", "--allow-empty", "-m", &format!("use {VALUE}")]);
        }),
        ("an author", "the commit", |t| {
            let author = format!("{VALUE} <a@b>");
            t.git(&["commit", "-q", "--allow-empty", "-m", "x", "--author", &author]);
        }),
        ("a tag's message", "the tag", |t| drop(t.git(&["tag", "-a", "v1", "-m", VALUE]))),
        ("a branch's name", "the name of", |t| drop(t.git(&["branch", &VALUE.replace('+', "%2B")]))),
        ("a name in an old tree", "the tree", |t| {
            write(&t.top, b"s3cr3t%2Fvalue%2B0123456789", "x");
            commit_all(t, "with");
            std::fs::remove_file(t.top.join("s3cr3t%2Fvalue%2B0123456789")).unwrap();
            commit_all(t, "without");
        }),
        ("a staged file", "the blob", |t| {
            write(&t.top, b"a", VALUE);
            t.git(&["add", "a"]);
            write(&t.top, b"a", "not any more\n");
        }),
    ];
    for (what, place, make) in cases {
        let host = Host::new();
        let trip = host.upload().await;
        let before = snapshot(&host.top);
        make(&trip);
        let back = trip.collect();
        let error = trip.stage_without(&back, true, &registry()).await.expect_err(what);
        assert_eq!(error.code(), Code::SecretFound, "{what}: {error}");
        let text = format!("{} {}", error.message(), error.detail_text().unwrap());
        assert!(text.contains(place), "{what}: {text}");
        assert_untouched(&before, &host.top, what);
        let beside: Vec<_> = std::fs::read_dir(host.top.parent().unwrap()).unwrap().collect();
        assert_eq!(beside.len(), 1, "{what}: a staged tree is left");
    }
}

#[tokio::test]
async fn what_the_host_has_already_or_does_not_get_is_no_finding() {
    type Make = fn(&Trip<'_>);
    let cases: &[(&str, Make)] = &[
        ("an edit beside it", |t| {
            write(&t.top, b"has", format!("{VALUE}\nmore\n"));
            commit_all(t, "more");
        }),
        ("old content again", |t| {
            t.git(&["checkout", "-q", "HEAD~1", "--", "had"]);
            t.git(&["commit", "-q", "-m", "again"]);
            std::fs::remove_file(t.top.join("had")).unwrap();
            commit_all(t, "and away");
        }),
        ("an object that no branch holds", |t| {
            write(&t.top, b"a", VALUE);
            t.git(&["add", "a"]);
            write(&t.top, b"a", "clean\n");
            commit_all(t, "clean");
        }),
    ];
    for (what, make) in cases {
        let host = Host::new();
        write(&host.top, b"has", VALUE);
        write(&host.top, b"had", VALUE);
        host.commit("with");
        std::fs::remove_file(host.top.join("had")).unwrap();
        host.commit("without");
        let trip = host.upload().await;
        make(&trip);
        let back = trip.collect();
        let staged = trip.stage_without(&back, false, &registry()).await;
        assert!(matches!(staged, Ok(Staged::Tree(_))), "{what}: {staged:?}");
    }
}

#[tokio::test]
async fn objects_that_unpack_to_too_much_are_not_read() {
    let host = Host::new();
    let trip = host.upload().await;
    write(&trip.top, b"zeros", vec![0; 3 << 20]);
    commit_all(&trip, "with");
    std::fs::remove_file(trip.top.join("zeros")).unwrap();
    commit_all(&trip, "without");
    let back = trip.collect();
    let input = StageInput {
        repo: &trip.repo,
        manifest: &trip.manifest,
        delta: &back.delta,
        after: &back.after,
        incoming: back.incoming.path(),
        index: back.index.as_deref(),
        work_dir: back.work.path(),
        run_id: "r1",
        secrets: &registry(),
        limits: &Limits { bytes: 1 << 20, ..Limits::default() },
        need_tree: false,
    };
    let error = stage(input).await.unwrap_err();
    assert_eq!(error.code(), Code::ImportBlocked);
    assert!(error.message().contains("unpack to"), "{error}");
}
