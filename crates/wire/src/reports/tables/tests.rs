//! Tables that people wrote.

use super::cells::{amount, decimal};
use super::*;
use crate::reports::time::Time;

const CSV: &str = "framework,version,RPS,p99 (ms),avg latency,CPU,Memory,errors\n\
                   actix,4.9,\"123,456.7\",1.25,340us,490m,76MiB,0\n\
                   express,5.0,9876.5,-1,12.5ms,1,1.5 GiB,12\n";

#[test]
fn columns_are_guessed_and_read() {
    let table = Table::find(CSV).expect("a table");
    let mapping = table.guess();
    let ms = Some(Unit::Milliseconds);
    let expected = [
        Column::Name,
        Column::Name,
        Column::Rate(""),
        Column::Latency(Statistic::Percentile(99.0), ms),
        Column::Latency(Statistic::Mean, Some(Unit::InCells)),
        Column::Cpu(""),
        Column::Memory(""),
        Column::Failed(""),
    ];
    assert_eq!(mapping, expected);
    let reports = table.reports(&mapping).expect("reports");
    let [actix, express] = reports.as_slice() else { panic!("{reports:?}") };
    assert_eq!(
        (actix.name.as_deref(), actix.rate_per_s, actix.failed),
        (Some("actix / 4.9"), Some(123_456.7), Some(0))
    );
    assert_eq!(actix.latency.percentile(99.0).map(|time| (time.ms, time.error_ms)), Some((1.25, 0.005)));
    assert_eq!(actix.latency.mean.map(|time| time.ms), Some(0.34));
    assert_eq!(actix.others.get("target_cpu_cores"), Some(&0.49));
    assert_eq!(actix.others.get("target_memory_bytes"), Some(&(76.0 * 1024.0 * 1024.0)));
    assert_eq!((express.latency.percentile(99.0), express.line), (None, Some(3)), "-1 is unknown");
}

#[test]
fn a_table_of_another_language_has_its_units_asked_for() {
    let table = Table::find("Сервер;Запросов/с;Задержка p99, мс\nnginx;10 500,5;1,25\n").expect("a table");
    let mapping = table.guess();
    assert_eq!(mapping, [Column::Name, Column::Other, Column::Latency(Statistic::Percentile(99.0), None)]);
    let fault = table.reports(&mapping).expect_err("no unit").to_string();
    assert_eq!(fault, "line 2: Задержка p99, мс: \"1,25\" has no unit: choose the one of the column");
    let chosen =
        [Column::Name, Column::Rate(""), Column::Latency(Statistic::Percentile(99.0), Some(Unit::Milliseconds))];
    let reports = table.reports(&chosen).expect("reports");
    assert_eq!(
        (reports[0].rate_per_s, reports[0].latency.percentile(99.0).map(|time| time.ms)),
        (Some(10_500.5), Some(1.25))
    );
}

#[test]
fn a_table_of_markdown_is_read() {
    let text = "# Results\n\n| Server | Req/s | Median | p999 |\n|:---|---:|--:|--:|\n| **axum** | 120k | 0.4 ms | 2.1 ms |\n| `gin` | 80.5k | n/a | 3 ms |\n\nEnd.\n";
    let table = Table::find(text).expect("a table");
    let mapping = table.guess();
    let in_cells = Some(Unit::InCells);
    let percentile = |percent| Column::Latency(Statistic::Percentile(percent), in_cells);
    assert_eq!(mapping, [Column::Name, Column::Rate(""), percentile(50.0), percentile(99.9)]);
    let reports = table.reports(&mapping).expect("reports");
    let found: Vec<_> = reports.iter().map(|one| (one.name.as_deref(), one.rate_per_s, one.line)).collect();
    assert_eq!(found, [(Some("axum"), Some(120_000.0), Some(5)), (Some("gin"), Some(80_500.0), Some(6))]);
    assert_eq!(
        (reports[0].latency.percentile(99.9).map(|time| time.ms), reports[1].latency.percentile(50.0)),
        (Some(2.1), None)
    );
}

#[test]
fn numbers_of_several_languages_are_read() {
    let cases = [
        ("1234.5", Some(1_234.5), None),
        ("1,234.5", Some(1_234.5), None),
        ("1.234,5", None, Some(1_234.5)),
        ("1 234,5", None, Some(1_234.5)),
        ("1\u{a0}234,5", None, Some(1_234.5)),
        ("1'234.5", Some(1_234.5), None),
        ("1,234,567", Some(1_234_567.0), None),
        ("1.234.567", None, Some(1_234_567.0)),
        ("0,125", None, Some(0.125)),
        ("1,234", Some(1_234.0), Some(1.234)),
        ("1.234", Some(1.234), Some(1_234.0)),
        ("1234", Some(1_234.0), Some(1_234.0)),
    ];
    for (text, point, comma) in cases {
        assert_eq!((decimal(text, Notation::Point), decimal(text, Notation::Comma)), (point, comma), "{text}");
    }
    for wrong in ["", "1,2,3", "1.2.3", "abc", "1e5", "12,34.5.6"] {
        assert_eq!((decimal(wrong, Notation::Point), decimal(wrong, Notation::Comma)), (None, None), "{wrong}");
    }
    let [thousands, rate, time] =
        ["12.5k", "1,234 req/s", "5 s"].map(|cell| amount(cell, Notation::Point).map(|number| number.value));
    assert_eq!((thousands, rate, time), (Some(12_500.0), Some(1_234.0), None));
}

fn read(text: &str) -> Result<Vec<Report>, Fault> {
    let table = Table::find(text).expect("a table");
    table.reports(&table.guess())
}

#[test]
fn one_number_decides_how_all_of_a_table_are_written() {
    let reports =
        read("Server;Req/s;Requests;p99 ms\nold;1500,5;45015;1,234\nnew;1480,2;44406;0,987\n").expect("reports");
    let p99: Vec<_> = reports.iter().map(|one| one.latency.percentile(99.0).map(|time| time.ms)).collect();
    assert_eq!(p99, [Some(1.234), Some(0.987)]);
    let reports = read("Server;Req/s;Requests;p99 ms\na;1.500;45.000;1,25\nb;980;29.400;2,5\n").expect("reports");
    let found: Vec<_> = reports.iter().map(|one| (one.rate_per_s, one.requests)).collect();
    assert_eq!(found, [(Some(1500.0), Some(45_000)), (Some(980.0), Some(29_400))]);
    let quoted = read("Server,Req/s\na,\"1,500\"\n").expect("thousands");
    assert_eq!(quoted[0].rate_per_s, Some(1500.0));
    let cases = [
        ("Server;Req/s\na;1.500\n", "line 2: Req/s: \"1.500\": may be 1.500 or 1500: write thousands without"),
        (
            "Server,Req/s,p99 ms\na,1500.5,1\nb,1200,\"2,5\"\n",
            "line 3: p99 ms: \"2,5\": contradicts line 2: Req/s: \"1500.5\": write all decimals",
        ),
    ];
    for (text, expected) in cases {
        let fault = read(text).expect_err(text).to_string();
        assert!(fault.starts_with(expected), "{fault}");
    }
}

#[test]
fn a_row_that_cannot_be_read_is_no_end_of_the_table() {
    let fault = read("server,rps\na,1\nb,2,3\nc,3\n").expect_err("a row of three cells").to_string();
    assert_eq!(fault, "line 3: has 3 cells, but the header has 2: complete the row");
    let fault =
        read("| server | rps |\n|---|---|\n| a | 1 |\n| b |\n| c | 3 |\n").expect_err("a row of one").to_string();
    assert_eq!(fault, "line 4: has 1 cells, but the header has 2: complete the row");
    let many = format!("server,rps\n{}", "a,1\n".repeat(10_001));
    let fault = read(&many).expect_err("many rows").to_string();
    assert_eq!(fault, "line 10002: the table has more than 10000 rows: split it");
    assert_eq!(read("server,rps\n\na,1\n\nb,2\n").expect("empty lines are no rows").len(), 2);
}

#[test]
fn the_separator_is_that_of_most_columns() {
    let reports = read("Server;Req/s;Requests;p99, ms\nold;1500;45000;12,5\n").expect("reports");
    assert_eq!(reports[0].latency.percentile(99.0).map(|time| time.ms), Some(12.5));
}

#[test]
fn a_wide_table_is_read_as_the_chosen_metric() {
    let table = Table::find(",default,gin\n0 ms,40.49,39.22\n10 ms,43.64,-1\n").expect("a table");
    let rates = table.wide(Column::Rate("")).expect("reports");
    let found: Vec<_> = rates.iter().map(|one| (one.name.as_deref(), one.rate_per_s)).collect();
    let expected = [
        (Some("default / 0 ms"), Some(40.49)),
        (Some("gin / 0 ms"), Some(39.22)),
        (Some("default / 10 ms"), Some(43.64)),
        (Some("gin / 10 ms"), None),
    ];
    assert_eq!(found, expected);
    let latencies = table.wide(Column::Latency(Statistic::Mean, Some(Unit::Milliseconds))).expect("reports");
    assert_eq!(latencies[2].latency.mean.map(|time| time.ms), Some(43.64));
}

fn guessed(header: &str, row: &str) -> Vec<String> {
    let table = Table::find(&format!("{header}\n{row}\n")).expect("a table");
    table.guess().iter().map(Column::to_string).collect()
}

#[test]
fn a_name_has_a_meaning_if_all_of_its_words_fit() {
    let cases = [
        ("server,rps,errors %", "a,1,2", "name|requests/s|failed %"),
        ("server,rps,error rate (%)", "a,1,2", "name|requests/s|failed %"),
        ("server,rps,error rate", "a,1,2%", "name|requests/s|failed"),
        ("server,rps,error rate", "a,1,2", "name|requests/s|?"),
        ("server,rps,failures/s", "a,1,2", "name|requests/s|?"),
        ("server,rps,errors,failures/s,error %", "a,1,2,3,4", "name|requests/s|failed|ignore|ignore"),
        ("server,rps,success rate", "a,1,2", "name|requests/s|?"),
        ("server,rps,errors,timeouts", "a,1,2,3", "name|requests/s|failed|?"),
        ("server,failed requests/s", "a,1", "name|?"),
        ("server,rps_mean,rps_std", "a,1,2", "name|requests/s|ignore"),
        ("server,Requests/s,Requests per second (max)", "a,1,2", "name|requests/s|ignore"),
        ("server,Req/s per core,Requests/min,p99 req/s", "a,1,2,3", "name|ignore|ignore|ignore"),
        ("server,requests,rps,error count", "a,1,2,3", "name|requests|requests/s|failed"),
        ("server,requests,rps,total MB", "a,1,2,3", "name|requests|requests/s|ignore"),
        ("server,total duration (s),rps", "a,1,2", "name|duration s|requests/s"),
        ("server,total requests,successful requests,failed requests", "a,1,2,3", "name|requests|ignore|failed"),
        ("server,avg latency (ms),avg startup time (ms)", "a,1,2", "name|mean ms|ignore"),
        ("server,TTFB p99 (ms),latency p99 (ms)", "a,1,2", "name|ignore|p99 ms"),
        ("server,RPS (k),kreq/s,k requests", "a,1,2,3", "name|requests/s k|requests/s k|requests k"),
        ("server,p99_9 ms,latencyP99Ms,p99.99 us", "a,1,2,3", "name|p99.9 ms|p99 ms|p99.99 us"),
        ("server,RequestsPerSecond,avgLatency (ms)", "a,1,2", "name|requests/s|mean ms"),
        ("server,duration min,min ms", "a,1,2", "name|duration min|min ms"),
        ("server,CPU %,CPU%,CPU,CPU", "a,1,2,3,4m", "name|cpu %|cpu %|ignore|cpu"),
        ("server,Memory (MB),RSS MiB,memory,memory", "a,1,2,3,4Mi", "name|memory MB|memory MiB|ignore|memory"),
    ];
    for (header, row, expected) in cases {
        assert_eq!(guessed(header, row).join("|"), expected, "{header}");
    }
}

#[test]
fn a_share_of_failures_is_no_count() {
    let reports = read("server,requests,rps,errors %\na,1000,10,100\nb,1000,10,0.001\nc,1000,10,0\n").expect("reports");
    let failed: Vec<_> = reports.iter().map(|one| one.figures().expect("figures").failed).collect();
    assert_eq!(failed, [Some(1000), Some(1), Some(0)], "a run with a failure is never without one");
    let timed =
        Report { duration: Some(Time::exact(1e4)), ..read("server,rps,errors %\na,10,50\n").expect("one").remove(0) };
    assert_eq!(timed.figures().expect("figures").failed, Some(50));
    for (text, expected) in [
        ("server,rps,error rate\na,1,2\n", "the columns: \"error rate\" may have several meanings"),
        ("server,rps,errors\na,1,0.02\n", "line 2: errors: \"0.02\" is no number of requests"),
        ("server,rps,errors %\na,1,102\n", "line 2: errors %: \"102\" is no share from 0 to 100 %"),
    ] {
        let fault = read(text).expect_err(text).to_string();
        assert!(fault.starts_with(expected), "{fault}");
    }
}

#[test]
fn two_columns_of_one_meaning_are_refused() {
    for header in ["connections,users", "requests,total", "p50 ms,median ms", "rps,RPS (k)", "p99 ms,p99 us"] {
        let table = Table::find(&format!("server,{header}\na,1,2\n")).expect("a table");
        let fault = table.reports(&table.guess()).expect_err(header).to_string();
        let (first, second) = header.split_once(',').expect("two");
        assert!(fault.starts_with(&format!("the columns: \"{second}\" means ")), "{fault}");
        assert!(fault.ends_with(&format!(", as \"{first}\" does: ignore one of them")), "{fault}");
    }
}

#[test]
fn the_unit_of_a_column_is_that_of_its_plain_cells() {
    let table = Table::find("server,RPS (k),CPU %,Memory (MB)\na,1.5,85,120\nb,1.5k,85%,120MiB\n").expect("a table");
    let reports = table.reports(&table.guess()).expect("reports");
    let found: Vec<_> =
        reports.iter().map(|one| (one.rate_per_s, one.others.values().copied().collect::<Vec<_>>())).collect();
    assert_eq!(found, [(Some(1500.0), vec![0.85, 120e6]), (Some(1500.0), vec![0.85, 120.0 * 1024.0 * 1024.0])]);
}
