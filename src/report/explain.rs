//! The explanation of each error code: the sections of the reference page, built into the binary.

use crate::error::Code;

const REFERENCE: &str = include_str!("../../docs/reference/errors.md");

/// The section of a code, with its exit status.
pub fn page(code: Code) -> String {
    let exit = crate::Error::new(code, "").exit_code();
    let body = section(code.as_str()).unwrap_or("");
    format!("{code}: {}\n\nExit status {exit}.\n\n{}\n", code.summary(), body.trim())
}

fn section(code: &str) -> Option<&'static str> {
    let start = REFERENCE.find(&format!("\n## {code}\n"))?;
    let body = REFERENCE[start + 1..].split_once('\n')?.1;
    Some(body.split("\n## ").next().unwrap_or(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained_and_nothing_else_is() {
        let headings: Vec<_> = REFERENCE.lines().filter_map(|l| l.strip_prefix("## ")).collect();
        let codes: Vec<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(headings, codes, "docs/reference/errors.md has one section per code, in order");
        for code in Code::ALL {
            assert!(section(code.as_str()).unwrap().trim().len() > 40, "{code} is not explained");
        }
    }
}
