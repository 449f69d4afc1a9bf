//! The host's side of the supervisor, as far as it is pure.

use super::*;

fn launch() -> Launch {
    Launch {
        script: "/sandbox/.fs/supervise.sh".into(),
        dir: "/sandbox/my run".into(),
        deadline: Duration::from_mins(1),
        grace: Duration::from_millis(10),
        marker: "fs-1".into(),
        traceparent: None,
    }
}

#[test]
fn the_call_is_quoted() {
    assert_eq!(
        run_script(&launch(), 17),
        format!(
            "{SAY_MARK}exec sh /sandbox/.fs/supervise.sh run '/sandbox/my run' 60 fs-1 1 1000000000 17 600 16000000"
        )
    );
}

proptest::proptest! {
    #[test]
    fn the_answer_begins_after_the_mark_however_it_is_cut(
        noise in proptest::collection::vec(proptest::num::u8::ANY, 0..60),
        answer in proptest::collection::vec(proptest::num::u8::ANY, 0..60),
        size in 1_usize..40,
    ) {
        proptest::prop_assume!(memchr::memmem::find(&noise, MARK).is_none());
        let all = [&noise[..], MARK, &answer].concat();
        let mut begin = Begin::default();
        let heard: Vec<u8> = all.chunks(size).flat_map(|chunk| begin.rest(chunk).to_vec()).collect();
        // The noise may end like the mark begins; then an earlier place counts only when it is the whole mark.
        proptest::prop_assert_eq!(heard, answer);
    }
}

#[test]
fn reports_are_read_and_nonsense_is_unknown() {
    let read = |words| parse_report(words);
    assert_eq!(read("/bin/bash: warning\nfullsend-supervise v1 exit 3 120\n"), Some((Exit::Code(3), 120)));
    assert_eq!(read("fullsend-supervise v1 signal 9 0"), Some((Exit::Signal(9), 0)));
    assert_eq!(read("fullsend-supervise v1 deadline 60 5"), Some((Exit::Deadline, 5)));
    assert_eq!(read("fullsend-supervise v1 stopped 143 5"), Some((Exit::Signal(15), 5)));
    assert_eq!(read("fullsend-supervise v1 stopped 0 5"), Some((Exit::Code(0), 5)));
    assert_eq!(read("fullsend-supervise v1 else 1 5"), Some((Exit::Unknown, 5)));
    assert_eq!(read("fullsend-supervise v1 exit x 5"), Some((Exit::Unknown, 5)));
    assert_eq!(read("fullsend-supervise v2 exit 0 5"), None);
    assert_eq!(read(""), None);
}
