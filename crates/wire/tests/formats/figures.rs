//! Format × fixture × figures: each figure as the tool prints it, or as its file has it.

use brewbench_wire::reports::report::Report;
use brewbench_wire::reports::time::Time;

use super::{bytes, one, text};

/// The figures of a report. Times are milliseconds.
struct Row {
    fixture: &'static str,
    format: &'static str,
    /// Requests and failed ones.
    requests: [Option<u64>; 2],
    rate: Option<f64>,
    duration: Option<f64>,
    connections: Option<u64>,
    bytes: Option<u64>,
    /// Minimum, mean, maximum, standard deviation.
    ends: [Option<f64>; 4],
    /// The 50th, 90th, 99th and 99.9th percentile.
    percentiles: [Option<f64>; 4],
    statuses: &'static [(&'static str, u64)],
}

const ROWS: &[Row] = &[
    Row {
        fixture: "wrk.txt",
        format: "wrk",
        requests: [Some(29619), Some(0)],
        rate: Some(14794.88),
        duration: Some(2000.0),
        connections: Some(8),
        bytes: Some(3_586_130),
        ends: [None, Some(0.32879), Some(5.1), Some(0.313)],
        percentiles: [Some(0.268), Some(0.587), Some(1.74), None],
        statuses: &[],
    },
    Row {
        fixture: "wrk-404.txt",
        format: "wrk",
        requests: [Some(24825), Some(24825)],
        rate: Some(24815.89),
        duration: Some(1000.0),
        connections: Some(4),
        bytes: Some(2_034_237),
        ends: [None, Some(0.37482), Some(13.35), Some(0.91)],
        percentiles: [None, None, None, None],
        statuses: &[],
    },
    Row {
        fixture: "wrk2.txt",
        format: "wrk",
        requests: [Some(56093), Some(0)],
        rate: Some(1869.77),
        duration: Some(30000.0),
        connections: Some(100),
        bytes: Some(4_529_848),
        ends: [None, Some(6.46), Some(12.34), Some(1.93)],
        percentiles: [Some(6.67), Some(9.14), Some(11.18), Some(12.3)],
        statuses: &[],
    },
    Row {
        fixture: "wrk2-nan.txt",
        format: "wrk",
        requests: [Some(0), Some(0)],
        rate: Some(0.0),
        duration: Some(5010.0),
        connections: Some(50),
        bytes: Some(0),
        ends: [None, None, None, None],
        percentiles: [None, None, None, None],
        statuses: &[],
    },
    Row {
        fixture: "oha.json",
        format: "oha",
        requests: [Some(39001), Some(11)],
        rate: Some(19492.804_317_409_5),
        duration: Some(2001.2),
        connections: None,
        bytes: Some(194_990),
        ends: [Some(0.0421), Some(0.41), Some(18.1), None],
        percentiles: [Some(0.32), Some(0.78), Some(1.87), Some(4.2)],
        statuses: &[("200", 38990), ("503", 8)],
    },
    Row {
        fixture: "oha.txt",
        format: "oha-text",
        requests: [Some(39001), Some(11)],
        rate: Some(19492.8043),
        duration: Some(2001.2),
        connections: None,
        bytes: Some(194_990),
        ends: [Some(0.0), Some(0.4), Some(18.1), None],
        percentiles: [Some(0.3), Some(0.8), Some(1.9), Some(4.2)],
        statuses: &[("200", 38990), ("503", 8)],
    },
    Row {
        fixture: "hey.txt",
        format: "hey-text",
        requests: [Some(42315), Some(0)],
        rate: Some(21141.2144),
        duration: Some(2001.5),
        connections: None,
        bytes: Some(211_575),
        ends: [Some(0.0), Some(0.4), Some(32.0), None],
        percentiles: [Some(0.2), Some(0.8), Some(2.5), None],
        statuses: &[("200", 42315)],
    },
    Row {
        fixture: "hey-404.txt",
        format: "hey-text",
        requests: [Some(200), Some(200)],
        rate: Some(13952.892),
        duration: Some(14.3),
        connections: None,
        bytes: None,
        ends: [Some(0.0), Some(0.3), Some(1.6), None],
        percentiles: [Some(0.2), Some(0.5), Some(1.6), None],
        statuses: &[("404", 200)],
    },
    Row {
        fixture: "hey-timeout.txt",
        format: "hey-text",
        requests: [Some(4), Some(4)],
        rate: Some(3.9801),
        duration: Some(1005.0),
        connections: None,
        bytes: None,
        ends: [None, None, None, None],
        percentiles: [None, None, None, None],
        statuses: &[],
    },
    Row {
        fixture: "bombardier.json",
        format: "bombardier",
        requests: [Some(82954), Some(0)],
        rate: Some(41682.476_228_577_91),
        duration: Some(2002.831_937),
        connections: Some(8),
        bytes: Some(10_037_434),
        ends: [None, Some(0.190_805_856_257_684_98), Some(57.955), Some(0.655_345_900_151_056_1)],
        percentiles: [Some(0.096), Some(0.295), Some(2.1), None],
        statuses: &[("2xx", 82954)],
    },
    Row {
        fixture: "bombardier-down.json",
        format: "bombardier",
        requests: [Some(41592), Some(41592)],
        rate: Some(41451.346_604_900_034),
        duration: Some(1003.689_207),
        connections: Some(4),
        bytes: Some(0),
        ends: [None, Some(0.094_098_696_864_781_69), Some(12.064), Some(0.334_278_132_113_121_8)],
        percentiles: [None, None, None, None],
        statuses: &[],
    },
    Row {
        fixture: "bombardier.txt",
        format: "bombardier-text",
        requests: [Some(75491), Some(0)],
        rate: Some(38004.0),
        duration: Some(2000.0),
        connections: Some(8),
        bytes: None,
        ends: [None, Some(0.20952), Some(30.13), Some(0.54956)],
        percentiles: [Some(0.104), Some(0.317), Some(2.54), None],
        statuses: &[("2xx", 75491)],
    },
    Row {
        fixture: "bombardier-timeout.txt",
        format: "bombardier-text",
        requests: [Some(4), Some(4)],
        rate: Some(2.79),
        duration: None,
        connections: Some(4),
        bytes: None,
        ends: [None, Some(5010.0), Some(5010.0), Some(0.22307)],
        percentiles: [None, None, None, None],
        statuses: &[],
    },
    Row {
        fixture: "vegeta.json",
        format: "vegeta",
        requests: [Some(400), Some(0)],
        rate: Some(200.532_964_782_620_8),
        duration: Some(1994.684_517),
        connections: None,
        bytes: Some(2000),
        ends: [Some(0.194_389), Some(0.676_053), Some(6.244_516), None],
        percentiles: [Some(0.503_278), Some(0.738_068), Some(5.447_544), None],
        statuses: &[("200", 400)],
    },
    Row {
        fixture: "vegeta.txt",
        format: "vegeta-text",
        requests: [Some(400), Some(0)],
        rate: Some(200.53),
        duration: Some(1995.0),
        connections: None,
        bytes: Some(2000),
        ends: [Some(0.194_389), Some(0.676_053), Some(6.245), None],
        percentiles: [Some(0.503_278), Some(0.738_068), Some(5.448), None],
        statuses: &[("200", 400)],
    },
    Row {
        fixture: "vegeta-404.txt",
        format: "vegeta-text",
        requests: [Some(50), Some(50)],
        rate: Some(51.03),
        duration: Some(979.784),
        connections: None,
        bytes: Some(0),
        ends: [Some(0.294_978), Some(0.575_275), Some(1.872), None],
        percentiles: [Some(0.524_919), Some(0.735_904), Some(1.872), None],
        statuses: &[("404", 50)],
    },
    Row {
        fixture: "vegeta-hdrplot.txt",
        format: "vegeta-hdrplot",
        requests: [Some(400), None],
        rate: None,
        duration: None,
        connections: None,
        bytes: None,
        ends: [Some(0.194_389), None, Some(6.244_516), None],
        percentiles: [Some(0.503_278), Some(0.738_068), None, None],
        statuses: &[],
    },
    Row {
        fixture: "ab.txt",
        format: "ab",
        requests: [Some(2000), Some(0)],
        rate: Some(4237.96),
        duration: Some(472.0),
        connections: Some(8),
        bytes: Some(242_000),
        ends: [Some(0.0), Some(2.0), Some(8.0), Some(0.9)],
        percentiles: [Some(2.0), Some(3.0), Some(5.0), None],
        statuses: &[],
    },
    Row {
        fixture: "ab-404.txt",
        format: "ab",
        requests: [Some(500), Some(500)],
        rate: Some(38314.18),
        duration: Some(13.0),
        connections: Some(4),
        bytes: Some(53000),
        ends: [Some(0.0), Some(0.0), Some(1.0), Some(0.1)],
        percentiles: [Some(0.0), Some(0.0), Some(1.0), None],
        statuses: &[],
    },
    Row {
        fixture: "h2load.txt",
        format: "h2load",
        requests: [Some(2000), Some(0)],
        rate: Some(20719.38),
        duration: Some(96.53),
        connections: Some(4),
        bytes: Some(54420),
        ends: [Some(0.073), Some(0.508), Some(5.91), Some(0.528)],
        percentiles: [None, None, None, None],
        statuses: &[("2xx", 2000)],
    },
    Row {
        fixture: "h2load-h1.txt",
        format: "h2load",
        requests: [Some(51565), Some(0)],
        rate: Some(25782.5),
        duration: Some(2000.0),
        connections: Some(4),
        bytes: Some(6_239_365),
        ends: [Some(0.02), Some(0.154), Some(24.31), Some(0.438)],
        percentiles: [None, None, None, None],
        statuses: &[("2xx", 51565)],
    },
    Row {
        fixture: "autocannon.json",
        format: "autocannon",
        requests: [Some(29638), Some(0)],
        rate: Some(14817.0),
        duration: Some(2010.0),
        connections: Some(8),
        bytes: Some(3_586_198),
        ends: [None, Some(0.16), Some(24.0), Some(0.61)],
        percentiles: [Some(0.0), Some(1.0), Some(2.0), Some(5.0)],
        statuses: &[("200", 29638)],
    },
    Row {
        fixture: "autocannon-404.json",
        format: "autocannon",
        requests: [Some(13597), Some(13597)],
        rate: Some(13596.0),
        duration: Some(1010.0),
        connections: Some(4),
        bytes: Some(1_114_954),
        ends: [None, Some(0.04), Some(9.0), Some(0.34)],
        percentiles: [Some(0.0), Some(0.0), Some(1.0), Some(6.0)],
        statuses: &[("404", 13597)],
    },
    Row {
        fixture: "autocannon.txt",
        format: "autocannon-text",
        requests: [Some(36283), Some(0)],
        rate: Some(18142.0),
        duration: Some(2010.0),
        connections: Some(8),
        bytes: Some(4_390_000),
        ends: [None, Some(0.15), Some(16.0), Some(0.57)],
        percentiles: [Some(0.0), None, Some(2.0), None],
        statuses: &[("200", 36283)],
    },
    Row {
        fixture: "autocannon-l.txt",
        format: "autocannon-text",
        requests: [None, Some(0)],
        rate: Some(14595.0),
        duration: Some(2020.0),
        connections: Some(8),
        bytes: Some(3_530_000),
        ends: [None, Some(0.19), Some(21.0), Some(0.59)],
        percentiles: [Some(0.0), None, Some(2.0), None],
        statuses: &[],
    },
    Row {
        fixture: "fortio.json",
        format: "fortio",
        requests: [Some(400), Some(0)],
        rate: Some(199.892_506_205_647_83),
        duration: Some(2001.075_516),
        connections: Some(4),
        bytes: None,
        ends: [Some(0.068_551), Some(0.419_106_127_499_999_9), Some(4.422_884), Some(0.300_740_874_267_202_5)],
        percentiles: [Some(0.540_200_748_091_603_1), Some(0.919_416_625_954_198_5), Some(1.5), Some(4.253_730_400_000_009_5)],
        statuses: &[("200", 400)],
    },
    Row {
        fixture: "locust_stats.csv",
        format: "locust",
        requests: [Some(2413), Some(612)],
        rate: Some(1205.301_251_847_247_8),
        duration: None,
        connections: None,
        bytes: None,
        ends: [Some(0.925_664_000_533_288_3), Some(2.199_731_019_932_513_3), Some(43.115_178_999_869_386), None],
        percentiles: [Some(2.0), Some(3.0), Some(5.0), Some(36.0)],
        statuses: &[],
    },
    Row {
        fixture: "locust0_requests.csv",
        format: "locust",
        requests: [Some(2413), Some(612)],
        rate: Some(1205.3),
        duration: None,
        connections: None,
        bytes: None,
        ends: [Some(1.0), Some(2.0), Some(43.0), None],
        percentiles: [Some(2.0), None, None, None],
        statuses: &[],
    },
    Row {
        fixture: "jmeter-statistics.json",
        format: "jmeter-statistics",
        requests: [Some(4), Some(1)],
        rate: Some(40.0),
        duration: None,
        connections: None,
        bytes: None,
        ends: [Some(8.0), Some(23.75), Some(55.0), None],
        percentiles: [Some(16.0), Some(55.0), Some(55.0), None],
        statuses: &[],
    },
    Row {
        fixture: "gatling-stats.json",
        format: "gatling-stats",
        requests: [Some(82333), Some(10754)],
        rate: Some(600.971),
        duration: None,
        connections: None,
        bytes: None,
        ends: [Some(1.0), Some(2024.0), Some(35977.0), Some(4179.0)],
        percentiles: [Some(746.0), None, Some(23551.0), None],
        statuses: &[],
    },
    Row {
        fixture: "gatling-global-stats.json",
        format: "gatling-stats",
        requests: [Some(82333), Some(10754)],
        rate: Some(600.971),
        duration: None,
        connections: None,
        bytes: None,
        ends: [Some(1.0), Some(2024.0), Some(35977.0), Some(4179.0)],
        percentiles: [Some(746.0), None, Some(23551.0), None],
        statuses: &[],
    },
    Row {
        fixture: "artillery.json",
        format: "artillery",
        requests: [Some(60), Some(30)],
        rate: None,
        duration: Some(2905.0),
        connections: None,
        bytes: Some(150),
        ends: [Some(0.0), Some(0.4), Some(2.0), None],
        percentiles: [Some(0.0), Some(1.0), Some(2.0), Some(2.0)],
        statuses: &[("200", 30), ("404", 30)],
    },
    Row {
        fixture: "artillery1.json",
        format: "artillery",
        requests: [Some(60), Some(10)],
        rate: Some(19.67),
        duration: None,
        connections: None,
        bytes: None,
        ends: [Some(0.6), None, Some(12.4), None],
        percentiles: [Some(1.2), None, Some(9.9), None],
        statuses: &[("200", 50), ("404", 8)],
    },
    Row {
        fixture: "hyperfoil.json",
        format: "hyperfoil",
        requests: [Some(6000), Some(20)],
        rate: None,
        duration: Some(60000.0),
        connections: None,
        bytes: None,
        ends: [Some(0.110_592), Some(0.807_556), Some(23.855_103), Some(0.402_111)],
        percentiles: [Some(0.737_279), Some(1.236_991), Some(2.080_767), Some(4.947_967)],
        statuses: &[("2xx", 5980), ("5xx", 10)],
    },
    Row {
        fixture: "crank.json",
        format: "crank",
        requests: [Some(7_736_431), Some(3)],
        rate: Some(512_345.6),
        duration: None,
        connections: None,
        bytes: None,
        ends: [None, Some(0.52), Some(41.2), None],
        percentiles: [Some(0.43), Some(0.88), Some(2.31), None],
        statuses: &[],
    },
];

fn ms(time: Option<Time>) -> Option<f64> {
    time.map(|time| time.ms)
}

#[test]
fn each_figure_equals_that_of_the_tool() {
    for row in ROWS {
        let Report { format, requests, failed, rate_per_s, duration, load, received_bytes, latency, statuses, .. } =
            one(&bytes(row.fixture));
        let name = row.fixture;
        assert_eq!(format, row.format, "{name}");
        assert_eq!([requests, failed], row.requests, "{name}: requests");
        assert_eq!(rate_per_s, row.rate, "{name}: rate");
        assert_eq!(ms(duration), row.duration, "{name}: duration");
        assert_eq!(load.connections, row.connections, "{name}: connections");
        assert_eq!(received_bytes, row.bytes, "{name}: bytes");
        assert_eq!([latency.min, latency.mean, latency.max, latency.stddev].map(ms), row.ends, "{name}: ends");
        let percentiles = [50.0, 90.0, 99.0, 99.9].map(|percent| ms(latency.percentile(percent)));
        assert_eq!(percentiles, row.percentiles, "{name}: percentiles");
        let found: Vec<(&str, u64)> = statuses.iter().map(|(status, count)| (status.as_str(), *count)).collect();
        assert_eq!(found, row.statuses, "{name}: statuses");
    }
}

#[test]
fn the_units_of_oha_depend_on_the_slowest_request() {
    let plain = text("oha.txt");
    for (unit, factor) in [("ms", 1e3), ("us", 1e6), ("10 sec", 0.1), ("min", 1.0 / 60.0)] {
        let changed: Vec<String> = plain.lines().map(|line| in_unit(line, unit, factor)).collect();
        let report = one(changed.join("\n").as_bytes());
        let found = [report.duration, report.latency.max, report.latency.percentile(99.0)].map(ms);
        for (found, expected) in found.into_iter().zip([2_001.2, 18.1, 1.9]) {
            let found = found.unwrap_or_else(|| panic!("{unit}"));
            assert!((found - expected).abs() < 0.01 * expected, "{unit}: {found} instead of {expected}");
        }
    }
}

/// Writes the seconds at the end of a line in another unit.
fn in_unit(line: &str, unit: &str, factor: f64) -> String {
    let Some((before, seconds)) = line.strip_suffix(" secs").and_then(|line| line.rsplit_once(['\t', ' '])) else {
        return line.to_owned();
    };
    let separator = line.get(before.len()..=before.len()).unwrap_or_default();
    format!("{before}{separator}{:.9} {unit}", seconds.parse::<f64>().expect("seconds") * factor)
}
