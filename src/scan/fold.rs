//! Text as a reader sees it: letters of other alphabets that look like Latin ones become those, what does not show
//! goes, and lines stay where they are.

use super::unicode;

/// Folds a text for comparison with phrases. The number of `\n` before any word does not change.
pub(crate) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if unicode::is_invisible(c) {
            continue;
        }
        match latin(c) {
            Some(letter) => out.push(letter.to_ascii_lowercase()),
            None => out.extend(c.to_lowercase()),
        }
    }
    out
}

/// The ASCII character that a character stands for: compatibility forms (as in NFKC) and look-alikes.
pub(crate) fn latin(c: char) -> Option<char> {
    if c.is_ascii() {
        return None;
    }
    let code = u32::from(c);
    let ascii = match code {
        // Full-width forms.
        0xff01..=0xff5e => code - 0xff01 + 0x21,
        // Mathematical alphanumerics: runs of A-Z a-z, then digits.
        0x1d400..=0x1d6a3 => letter((code - 0x1d400) % 52),
        0x1d7ce..=0x1d7ff => 0x30 + (code - 0x1d7ce) % 10,
        // Circled, squared and regional letters; circled and superscript digits.
        0x24b6..=0x24e9 => letter(code - 0x24b6),
        0x1f130..=0x1f149 => 0x41 + code - 0x1f130,
        0x1f150..=0x1f169 => 0x41 + code - 0x1f150,
        0x1f170..=0x1f189 => 0x41 + code - 0x1f170,
        0x2460..=0x2468 => 0x31 + code - 0x2460,
        0x24ea => 0x30,
        0x2080..=0x2089 => 0x30 + code - 0x2080,
        _ => return look_alike(c),
    };
    char::from_u32(ascii)
}

const fn letter(index: u32) -> u32 {
    if index < 26 { 0x41 + index } else { 0x61 + index - 26 }
}

/// Letters of other scripts that cannot be told from Latin ones, and spaces and dots that stand for those of ASCII.
fn look_alike(c: char) -> Option<char> {
    Some(match c {
        'а' | 'ɑ' | 'α' => 'a',
        'А' | 'Α' => 'A',
        'В' | 'Β' => 'B',
        'с' | 'ϲ' => 'c',
        'С' => 'C',
        'ԁ' => 'd',
        'е' | 'ҽ' => 'e',
        'Е' | 'Ε' => 'E',
        'ɡ' | 'ց' => 'g',
        'һ' => 'h',
        'Н' | 'Η' => 'H',
        'і' | 'ι' | 'ı' => 'i',
        'І' | 'Ι' => 'I',
        'ј' => 'j',
        'Ј' => 'J',
        'К' | 'Κ' => 'K',
        'ⅼ' | 'ӏ' => 'l',
        'М' | 'Μ' => 'M',
        'ո' => 'n',
        'Ν' => 'N',
        'о' | 'ο' | 'օ' => 'o',
        'О' | 'Ο' => 'O',
        'р' | 'ρ' => 'p',
        'Р' | 'Ρ' => 'P',
        'ԛ' => 'q',
        'ѕ' => 's',
        'Ѕ' => 'S',
        'Т' | 'Τ' => 'T',
        'υ' => 'u',
        'ν' | 'ѵ' => 'v',
        'ԝ' => 'w',
        'х' | 'χ' => 'x',
        'Х' | 'Χ' => 'X',
        'у' | 'γ' => 'y',
        'Υ' | 'У' => 'Y',
        'Ζ' => 'Z',
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        '‘' | '’' | 'ʼ' => '\'',
        '。' | '．' | '｡' | '․' => '.',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disguised_letters_become_plain() {
        for text in [
            "іgnоrе аll",
            "ｉｇｎｏｒｅ　ａｌｌ",
            "𝐢𝐠𝐧𝐨𝐫𝐞 𝖆𝖑𝖑",
            "ig\u{200b}no\u{ad}re a\u{2060}ll",
            "IGNORE ALL",
            "ⓘⓖⓝⓞⓡⓔ all",
        ] {
            assert_eq!(fold(text), "ignore all", "{text}");
        }
        assert_eq!(fold("привет é 漢"), "пpивeт é 漢");
    }
}
