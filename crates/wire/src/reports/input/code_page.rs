//! Restores text whose UTF-8 was read as another encoding, as PowerShell does with what a program prints. Pure.
//!
//! Without its marks a report of k6 would lack its thresholds without a word.

use super::lines::ReportLine;
use crate::reports::builtin;
use crate::reports::validate::Fault;

/// What tools print beyond ASCII.
const GLYPHS: [char; 24] = [
    '✓', '✗', '█', 'µ', 'μ', '↳', '…', '■', '∎', '▏', '│', '─', '┌', '┐', '└', '┘', '├', '┤', '┬', '┴', '┼', '‾', '×',
    '±',
];

/// The upper half of each encoding: 437, 850 and 1252, where what is undefined is a control character.
const CODE_PAGES: [&str; 3] = [
    "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
    "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}",
    "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ\u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ",
];

/// Titles of sections, after a mark.
const TITLES: [&str; 2] = ["TOTAL RESULTS", "THRESHOLDS"];

const ADVICE: &str = "k6's marks are not readable, so its thresholds would be missing: save its output as UTF-8 (in PowerShell \
                      first: `[Console]::OutputEncoding = [Text.Encoding]::UTF8`)";

/// Returns the text with its glyphs, if they were read in another encoding.
pub fn restored(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let mut restored: Option<String> = None;
    for page in CODE_PAGES {
        let letters: Vec<char> = page.chars().collect();
        for glyph in GLYPHS {
            let mut bytes = [0; 4];
            let as_read = |byte: u8| letters.get(usize::from(byte).checked_sub(128)?).copied();
            let read: Option<String> = glyph.encode_utf8(&mut bytes).bytes().map(as_read).collect();
            let Some(read) = read else { continue };
            let current = restored.as_deref().unwrap_or(text);
            if current.contains(&read) {
                restored = Some(current.replace(&read, &glyph.to_string()));
            }
        }
    }
    restored
}

/// Fails if a line of k6 has lost its mark.
pub fn check(lines: &[ReportLine]) -> Result<(), Fault> {
    lines.iter().find(|line| has_lost_mark(&line.text)).map_or(Ok(()), |line| Err(line.fault(ADVICE)))
}

/// Whether a title or a metric stands after something else than its mark.
fn has_lost_mark(text: &str) -> bool {
    let plain = text.trim_start_matches(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let is_title = TITLES.contains(&plain.trim_end()) && !text.starts_with('█');
    let is_marked = ['✓', '✗', '{'].iter().any(|mark| text.starts_with(*mark));
    let name = plain.split_once('.').map_or("", |(name, _)| name.trim_end());
    is_title || plain.len() < text.len() && !is_marked && builtin::lookup(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_page_has_its_upper_half() {
        for page in CODE_PAGES {
            assert_eq!(page.chars().count(), 128);
        }
    }

    #[test]
    fn glyphs_are_restored() {
        for garbled in ["Γ£ô 2.41┬╡s Γûê", "âœ“ 2.41Âµs â–ˆ"] {
            assert_eq!(restored(garbled).as_deref(), Some("✓ 2.41µs █"), "{garbled}");
        }
        assert_eq!((restored("✓ 2.41µs"), restored("plain")), (None, None));
    }
}
