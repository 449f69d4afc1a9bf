//! The console blocks of a Markdown page. Pure.

/// What a block is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Commands.
    Sh,
    /// Commands after `$ `, and what they print.
    Console(Vec<String>),
    /// Commands that do not show.
    Setup,
}

/// One block.
#[derive(Debug, Clone)]
pub struct Block {
    /// The line of its fence; the first of a page is 1.
    pub line: usize,
    /// What it is.
    pub kind: Kind,
    /// Why it is not executed.
    pub reason: Option<String>,
    /// How it ends.
    pub exit: i32,
    text: Vec<String>,
}

impl Block {
    /// The commands, with a line end.
    pub fn commands(&self) -> String {
        self.text.iter().fold(String::new(), |all, line| all + line + "\n")
    }
}

/// The blocks of a page, in its order.
pub fn parse(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let bare = line.trim_start();
        if bare == "<!-- test:" {
            let text = lines.by_ref().map(|(_, l)| l.to_owned()).take_while(|l| l.trim() != "-->").collect();
            blocks.push(Block { line: at + 1, kind: Kind::Setup, reason: None, exit: 0, text });
            continue;
        }
        let Some(info) = bare.strip_prefix("```") else { continue };
        let indent = line.len() - bare.len();
        let text: Vec<String> = lines
            .by_ref()
            .map(|(_, l)| l.get(indent..).unwrap_or_else(|| l.trim_start()).to_owned())
            .take_while(|l| l.trim_end() != "```")
            .collect();
        let mut words = info.split_whitespace();
        let kind = match words.next() {
            Some("sh" | "bash" | "shell") => Kind::Sh,
            Some("console") => Kind::Console(Vec::new()),
            _ => continue,
        };
        let mut block = Block { line: at + 1, kind, reason: None, exit: 0, text };
        for word in words {
            match word.split_once('=') {
                Some(("norun", reason)) => block.reason = Some(reason.to_owned()),
                Some(("exit", code)) => block.exit = code.parse().unwrap(),
                _ => block.reason = Some(format!("{word} in the first line of a block")),
            }
        }
        if block.kind != Kind::Sh {
            let all = std::mem::take(&mut block.text);
            let (commands, printed): (Vec<_>, Vec<_>) = all.into_iter().partition(|l| l.starts_with("$ "));
            block.text = commands.iter().map(|l| l[2..].to_owned()).collect();
            block.kind = Kind::Console(printed);
        }
        blocks.push(block);
    }
    blocks
}

/// Whether what was printed is what a page shows.
pub fn matches(expected: &[String], printed: &[&str]) -> bool {
    match (expected.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((line, rest)), _) if line.trim() == "…" => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]))
        }
        (Some((line, rest)), Some((first, others))) => {
            fits(line.trim_end(), first.trim_end()) && matches(rest, others)
        }
        _ => false,
    }
}

/// One line; `…` stands for anything.
fn fits(pattern: &str, line: &str) -> bool {
    match pattern.split_once('…') {
        None => pattern == line,
        Some((head, tail)) => line.strip_prefix(head).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && fits(tail, &rest[at..]))
        }),
    }
}

#[test]
fn blocks_are_found_with_what_they_say() {
    let page = "text\n```sh norun=needs-key\na\n```\n```yaml\nb: 1\n```\n1. list\n   ```console exit=2\n   $ c\n   d\n   ```\n\
                <!-- test:\ne\n-->\n```sh norm=x\n```\n";
    let blocks = parse(page);
    assert_eq!(blocks.len(), 4);
    assert_eq!((blocks[0].line, blocks[0].reason.as_deref()), (2, Some("needs-key")));
    assert_eq!((blocks[1].commands().as_str(), blocks[1].exit), ("c\n", 2));
    assert_eq!(blocks[1].kind, Kind::Console(vec!["d".to_owned()]));
    assert_eq!((blocks[2].commands().as_str(), &blocks[2].kind), ("e\n", &Kind::Setup));
    assert!(blocks[3].reason.is_some(), "a slip is no silent block");
}

#[test]
fn an_ellipsis_stands_for_what_differs() {
    let page = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    for (expected, printed, fit) in [
        ("a\nb", vec!["a", "b"], true),
        ("a", vec!["a", "b"], false),
        ("a\n…\nd", vec!["a", "b", "c", "d"], true),
        ("a\n…\nd", vec!["a", "d"], true),
        ("took …s, … left", vec!["took 1.2s, 3 left"], true),
        ("took …s", vec!["took 1.2"], false),
    ] {
        assert_eq!(matches(&page(expected), &printed), fit, "{expected} {printed:?}");
    }
}
