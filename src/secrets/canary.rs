//! A value that nobody uses, sent through the redactor to see that it works.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{MASK, Redactor, Registry, Searcher, Secret};
use crate::error::{Code, Error, Result};

impl Registry {
    /// A registry that can [`Registry::check`] itself.
    ///
    /// # Errors
    /// [`Code::RedactionFailed`] when there is no randomness for the canary.
    pub fn guarded(values: impl IntoIterator<Item = Secret>) -> Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|e| broken(&format!("no random bytes: {e}")))?;
        let canary = Secret::new(format!("canary/{}", crate::report::hex(bytes)));
        Ok(Self::with_canary(values.into_iter().collect(), Some(canary)))
    }

    /// Sends the canary through the redactor and the search, in several forms and in pieces.
    ///
    /// # Errors
    /// [`Code::RedactionFailed`] when it shows: then no secret of the run is safe.
    pub fn check(&self) -> Result<()> {
        let Some(canary) = self.canary() else { return Ok(()) };
        let (value, (left, right)) = (canary.expose(), canary.expose().split_at(20));
        for form in [
            value.to_owned(),
            value.replace('/', "\\/"),
            value.replace('/', "%2F"),
            STANDARD.encode(value),
            format!("{left}\n{right}"),
        ] {
            let text = format!("before {form} after");
            let mut redactor = Redactor::new(self);
            let mut out = Vec::new();
            for piece in text.as_bytes().chunks(7) {
                out.extend(redactor.push(piece));
            }
            out.extend(redactor.flush());
            let plain: Vec<u8> = out.iter().copied().filter(|b| *b != b'\n').collect();
            if plain != format!("before {MASK} after").as_bytes()
                || !Searcher::new(self).push(text.as_bytes())
            {
                return Err(broken("the canary was not replaced"));
            }
        }
        Ok(())
    }
}

fn broken(why: &str) -> Error {
    Error::new(Code::RedactionFailed, format!("secrets cannot be kept out of what is shown: {why}"))
        .help("nothing of the run is shown or kept that could hold one; report this, it should not happen")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_that_works_passes_and_one_that_does_not_know_its_canary_fails() {
        let registry = Registry::guarded([Secret::new("hunter2-hunter2")]).unwrap();
        registry.check().unwrap();
        assert!(registry.is_in(b"hunter2-hunter2"));
        assert_eq!(registry.values().len(), 1, "the canary is no value of the run");
        Registry::guarded([]).unwrap().check().unwrap();

        let mut blind = registry.clone();
        blind.forget_what_is_searched();
        assert_eq!(blind.check().unwrap_err().code(), Code::RedactionFailed);
        Registry::default().check().unwrap();
    }
}
