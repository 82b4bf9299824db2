//! What surrounds results in real files.

use std::io::{Read, Write};

use brewbench_wire::reports::read::read;

use super::{TEXTS, bytes, contents, fault, fixtures, one, text};

fn same(name: &str, changed: &[u8], stripped: &[&str]) {
    let (plain, found) = (one(&bytes(name)), contents(changed));
    let [report] = found.reports.as_slice() else { panic!("{name}: {found:?}") };
    assert_eq!((report.requests, report.rate_per_s), (plain.requests, plain.rate_per_s), "{name}");
    assert_eq!(report.latency, plain.latency, "{name}");
    for what in stripped {
        assert!(found.stripped.contains(what), "{name}: {:?}", found.stripped);
    }
}

#[test]
fn texts_are_read_behind_the_prefixes_of_logs() {
    let prefixes: [(&str, &[&str]); 9] = [
        ("[2026-11-25 10:00:00] ", &["the times of a log"]),
        ("[10:00:00.123] ", &["the times of a log"]),
        ("k6_1  | ", &["the names of containers"]),
        ("bench-1  | ", &["the names of containers"]),
        ("2026-11-25T10:00:00.123456789Z ", &["the times of a log"]),
        ("2026-11-25T10:00:00.1234567+01:00 stdout F ", &["the times of a log", "the names of streams"]),
        ("bench\tRun load\t2026-11-25T10:00:00.1234567Z ", &["the steps of a CI log"]),
        ("> ", &["the > of a quotation"]),
        ("load-7d9f  | 2026-11-25T10:00:00Z ", &["the names of containers", "the times of a log"]),
    ];
    for name in TEXTS {
        for (prefix, stripped) in prefixes {
            let lines: Vec<String> = text(name).lines().map(|line| [prefix, line].concat()).collect();
            same(name, lines.join("\n").as_bytes(), stripped);
        }
    }
}

#[test]
fn json_is_read_behind_prefixes_and_after_other_text() {
    for name in
        ["bombardier.json", "autocannon.json", "vegeta.json", "oha.json", "k6-summary-export.json", "fortio.json"]
    {
        let plain = text(name);
        let lines: Vec<String> = plain.lines().map(|line| format!("bench_1  | {line}")).collect();
        same(name, lines.join("\n").as_bytes(), &["the names of containers"]);
        same(name, format!("Starting the benchmark\n\n{plain}\nDone.\n").as_bytes(), &[]);
        same(name, format!("# Results\n\n```json\n{plain}\n```\n").as_bytes(), &["the fences of Markdown"]);
    }
}

#[test]
fn colours_line_ends_marks_and_encodings_are_removed() {
    for name in TEXTS {
        let plain = text(name);
        same(name, plain.replace('\n', "\r\n").as_bytes(), &[]);
        same(name, format!("\u{feff}{plain}").as_bytes(), &["a byte order mark"]);
        let coloured: Vec<String> = plain.lines().map(|line| format!("\u{1b}[32m{line}\u{1b}[0m")).collect();
        same(name, coloured.join("\n").as_bytes(), &["terminal colours"]);
        same(name, format!("{} %", plain.trim_end()).as_bytes(), &["the % by which zsh marks a missing end of line"]);
        let units = ["\u{feff}", &plain].concat().encode_utf16().collect::<Vec<u16>>();
        for write in [u16::to_le_bytes, u16::to_be_bytes] {
            let bytes: Vec<u8> = units.iter().flat_map(|unit| write(*unit)).collect();
            same(name, &bytes, &["UTF-16"]);
        }
    }
}

/// Reads each byte of UTF-8 as a character of code page 437, as PowerShell does.
fn as_code_page_437(text: &str) -> String {
    const UPPER: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
                         αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";
    let upper: Vec<char> = UPPER.chars().collect();
    text.bytes().map(|byte| if byte < 128 { char::from(byte) } else { upper[usize::from(byte - 128)] }).collect()
}

#[test]
fn glyphs_that_powershell_read_in_another_encoding_are_restored() {
    for name in ["k6.txt", "vegeta.txt", "autocannon.txt", "hey.txt"] {
        let garbled = as_code_page_437(&text(name));
        let bytes: Vec<u8> = ["\u{feff}", &garbled].concat().encode_utf16().flat_map(u16::to_le_bytes).collect();
        same(name, &bytes, &["UTF-16", "characters that were read in another encoding"]);
    }
}

#[test]
fn compressed_files_are_read() {
    for name in fixtures() {
        let Ok(plain) = read(&bytes(&name)[..]) else { continue };
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&bytes(&name)).expect("memory");
        let gzip = contents(&packed.finish().expect("memory"));
        assert_eq!(gzip.reports, plain.reports, "{name}");
        assert!(gzip.stripped.contains("gzip"));
        let zstd = ruzstd::encoding::compress_to_vec(&bytes(&name)[..], ruzstd::encoding::CompressionLevel::Fastest);
        let zstd = contents(&zstd);
        assert_eq!(zstd.reports, plain.reports, "{name}");
        assert!(zstd.stripped.contains("zstd"));
    }
}

#[test]
fn all_frames_of_a_zst_file_are_read() {
    let (all, plain) = (bytes("k6.ndjson"), one(&bytes("k6.ndjson")));
    let packed = |part: &[u8]| ruzstd::encoding::compress_to_vec(part, ruzstd::encoding::CompressionLevel::Fastest);
    let (start, end) = all.split_at(all.len() / 2);
    let skipped = b"\x53\x2a\x4d\x18\x03\0\0\0any";
    let frames = [&skipped[..], &packed(start), skipped, &packed(b""), &packed(end), skipped].concat();
    assert_eq!(one(&frames), plain);
    let mut cut = frames.clone();
    cut.truncate(frames.len() - 1);
    assert_eq!(fault(&cut), "the file: can't be read: its last zstd frame is truncated");
    let followed = [&packed(&all), &b"wrong"[..]].concat();
    let message = fault(&followed);
    assert!(message.starts_with("the file: can't be read: a zstd frame was expected: "), "{message}");
    // A window of 1 GiB.
    let wide = fault(b"\x28\xb5\x2f\xfd\0\xa0\x03\xff\xff");
    assert_eq!(wide, "the file: can't be read: its zstd window is larger than 100 MiB: compress it without --long");
}

#[test]
fn a_bomb_is_refused() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..64 {
        packed.write_all(&vec![b'{'; 1 << 20]).expect("memory");
    }
    let bomb = packed.finish().expect("memory");
    assert!(bomb.len() < 1 << 20);
    assert!(fault(&bomb).starts_with("the file: is larger than 16 MiB"), "{}", fault(&bomb));
    // A line without an end in a file that is read line by line.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(b"timeStamp,elapsed,label,responseCode,success\n1795760432000,12,").expect("memory");
    for _ in 0..64 {
        packed.write_all(&vec![b'x'; 1 << 20]).expect("memory");
    }
    let bomb = packed.finish().expect("memory");
    assert!(fault(&bomb).ends_with("a line has more than 1 MiB"), "{}", fault(&bomb));
}

/// A file that never ends after its start.
struct Endless(std::io::Cursor<&'static str>);

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(into)? {
            0 => std::io::repeat(b'\n').read(into),
            count => Ok(count),
        }
    }
}

#[test]
fn a_record_that_spans_any_number_of_lines_is_refused() {
    let header = "timeStamp,elapsed,label,responseCode,success\n1795760432000,12,a,200,true\n1795760432000,12,\"";
    let rest = "a record is longer than 4 MiB: is a quotation mark or a tag not closed?";
    for (start, place) in [
        (header, "line 3: can't be read"),
        ("timeStamp,elapsed,success,\"", "line 1: can't be read"),
        ("<testResults version=\"1.2\">\n<httpSample t=\"1\" ts=\"2\" s=\"true\"/><!--", "byte "),
        ("<testResults version=\"1.2\">\n<httpSample t=\"", "byte "),
    ] {
        let fault = read(Endless(std::io::Cursor::new(start))).expect_err("too long").to_string();
        assert!(fault.starts_with(place) && fault.ends_with(rest), "{fault}");
    }
}

#[test]
fn several_reports_of_a_readme_have_their_headings_and_lines() {
    let readme = format!(
        "# Results\n\nSome words.\n\n## actix\n\n```\n{}```\n\n## axum\n\n```sh\n$ wrk -c8 http://127.0.0.1:18431/\n{}```\n\n## bun\n\n{}\n\n## k6\n\n{}",
        text("wrk.txt"),
        text("wrk-404.txt"),
        text("ab.txt"),
        text("k6.txt")
    );
    let reports = contents(readme.as_bytes()).reports;
    let found: Vec<_> =
        reports.iter().map(|report| (report.format, report.heading.as_deref(), report.line, report.requests)).collect();
    let line = |part: &str| readme.lines().position(|line| line.starts_with(part)).map(|place| place + 1);
    assert_eq!(
        found,
        [
            ("wrk", Some("actix"), line("Running 2s"), Some(29_619)),
            ("wrk", Some("axum"), line("$ wrk"), Some(24_825)),
            ("ab", Some("bun"), line("This is ApacheBench"), Some(2_000)),
            ("k6-text", Some("k6"), line("  █ TOTAL RESULTS"), Some(6)),
        ]
    );
}

#[test]
fn many_reports_of_one_tool_in_one_file_are_many() {
    for name in [
        "vegeta.json",
        "bombardier.json",
        "vegeta.txt",
        "ab.txt",
        "wrk.txt",
        "k6.txt",
        "hey.txt",
        "h2load.txt",
        "oha.txt",
    ] {
        let all = vec![text(name); 50].join("\n");
        let reports = contents(all.as_bytes()).reports;
        assert_eq!(reports.len(), 50, "{name}");
        let first = one(&bytes(name));
        assert!(
            reports.iter().all(|report| report.latency == first.latency && report.requests == first.requests),
            "{name}"
        );
        let lines: Vec<_> = reports.iter().map(|report| report.line).collect();
        assert!(lines.is_sorted() && lines.first() < lines.last(), "{name}: {lines:?}");
    }
}

#[test]
fn logs_of_several_containers_are_taken_apart() {
    let lines: Vec<String> = text("wrk.txt")
        .lines()
        .flat_map(|line| [format!("bench-1  | {line}"), "web-1    | GET / 200".to_owned()])
        .collect();
    same("wrk.txt", lines.join("\n").as_bytes(), &["the names of containers"]);
}

#[test]
fn a_report_whose_columns_were_cut_names_the_line() {
    let k6 = text("k6.txt");
    let line = k6.lines().position(|line| line.contains("http_req_duration")).expect("a line");
    let cut: Vec<&str> = k6
        .lines()
        .map(|line| if line.contains("http_req_duration") { line.get(..line.len() - 3).unwrap_or(line) } else { line })
        .collect();
    let message = fault(cut.join("\n").as_bytes());
    assert_eq!(message, format!("line {}: http_req_duration is not in k6's format, or was truncated", line + 1));
}

#[test]
fn a_damaged_report_among_others_is_refused_alone() {
    let all = format!(
        "{}\n{}\n{}",
        text("wrk.txt"),
        text("ab.txt").replace(" 98%      4", " 98%      7"),
        text("h2load.txt")
    );
    let found = contents(all.as_bytes());
    assert_eq!(found.reports.iter().map(|report| report.format).collect::<Vec<_>>(), ["wrk", "h2load"]);
    let line = all.lines().position(|line| line.starts_with("This is ApacheBench")).expect("a line") + 1;
    let expected = format!("line {line}: latency: p99 of 5 ms is below p98 of 7 ms: one was damaged or edited");
    assert_eq!(found.refused.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
}

#[test]
fn records_are_read_behind_prefixes_in_fences_and_as_utf_16() {
    for name in ["k6.ndjson", "k6.csv", "jmeter.csv", "locust_stats.csv", "gatling-3.9.log", "hey.csv"] {
        let plain = text(name);
        let lines: Vec<String> = plain.lines().map(|line| format!("2026-11-25T10:00:00.123Z {line}")).collect();
        same(name, lines.join("\n").as_bytes(), &["the times of a log"]);
        let lines: Vec<String> = plain.lines().map(|line| format!("load_1  | {line}")).collect();
        same(name, lines.join("\n").as_bytes(), &["the names of containers"]);
        same(name, format!("```\n{plain}\n```\n").as_bytes(), &[]);
        let units = ["\u{feff}", &plain].concat().encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        same(name, &units, &["UTF-16"]);
    }
}
