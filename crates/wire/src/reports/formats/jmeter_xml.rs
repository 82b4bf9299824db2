//! JMeter's results as XML (JTL). Attributes have short names: `t` elapsed, `ts` start, `s` success, `rc` code.
//!
//! A `sample` that contains `httpSample` elements is a transaction; an `httpSample` within another one is a resource of
//! a page. Neither is counted on its own.

use std::io::{BufReader, Read};

use quick_xml::Reader as XmlReader;
use quick_xml::events::{BytesStart, Event};

use super::format::{Format, Reader};
use super::jmeter::{Sample, Samples};
use crate::reports::input::unpack::{Bounded, State};
use crate::reports::report::Report;
use crate::reports::validate::{Fault, Place};
use crate::reports::warning::Warning;

pub(super) const FORMAT: Format = Format {
    name: "jmeter-xml",
    title: "JMeter's results as XML (JTL)",
    tool: "jmeter",
    limits: "Times are whole milliseconds. All HTTP samplers are added up; resources of pages count with their page.",
    is_rounded: true,
    timeout_ms: None,
    reader: Reader::Records {
        is: |head| (head.trim_start().starts_with('<') && head.contains("<testResults")).into(),
        read,
    },
};

fn read(source: &mut dyn Read) -> Result<Vec<Report>, Fault> {
    let state = State::default();
    let mut reader = XmlReader::from_reader(BufReader::with_capacity(1 << 16, Bounded::new(source, &state)));
    reader.config_mut().check_end_names = false;
    let (mut buffer, mut samples) = (Vec::new(), Samples::default());
    let (mut depth, mut is_complete) = (0_usize, false);
    loop {
        buffer.clear();
        state.next_record();
        let event = reader.read_event_into(&mut buffer);
        let event = match event {
            Ok(event) => event,
            // JMeter was killed while it wrote.
            Err(quick_xml::Error::Syntax(_)) if samples.total() > 0 => break,
            Err(quick_xml::Error::Io(error)) => {
                let place = format!("byte {}", reader.buffer_position());
                return Err(Place::root(&place).fault(format_args!("can't be read: {error}")));
            }
            Err(error) => {
                let place = format!("byte {}", reader.error_position());
                return Err(Place::root(&place).fault(format_args!("is not valid XML: {error}")));
            }
        };
        match event {
            Event::Start(element) if element.name().as_ref() == b"httpSample" => {
                if depth == 0 {
                    add(&element, &mut samples)?;
                }
                depth += 1;
            }
            Event::Empty(element) if element.name().as_ref() == b"httpSample" && depth == 0 => {
                add(&element, &mut samples)?;
            }
            Event::End(element) if element.name().as_ref() == b"httpSample" => depth = depth.saturating_sub(1),
            Event::End(element) if element.name().as_ref() == b"testResults" => is_complete = true,
            Event::Eof => break,
            _ => {}
        }
    }
    let mut report = samples.report()?;
    if !is_complete {
        let what = "the end of the file is missing: the test was interrupted, or the file was truncated";
        report.warnings.push(Warning::Incomplete(what.to_owned()));
    }
    Ok(vec![report])
}

fn add(element: &BytesStart<'_>, samples: &mut Samples) -> Result<(), Fault> {
    let fault = |what: &str| Place::root("httpSample").fault(what);
    let (mut elapsed, mut at, mut success, mut code) = (None, None, None, String::new());
    let (mut received, mut sent, mut threads) = (None, None, None);
    for attribute in element.attributes() {
        let attribute = attribute.map_err(|error| fault(&error.to_string()))?;
        let value = attribute.unescape_value().map_err(|error| fault(&error.to_string()))?;
        match attribute.key.as_ref() {
            b"t" => elapsed = super::fields::parsed(&value),
            b"ts" => at = value.parse::<i64>().ok(),
            b"s" => success = Some(value.as_ref() == "true"),
            b"rc" => code = value.into_owned(),
            b"by" => received = value.parse().ok(),
            b"sby" => sent = value.parse().ok(),
            b"na" => threads = value.parse().ok(),
            _ => {}
        }
    }
    samples.add(&Sample {
        at_ms: at.ok_or_else(|| fault("has no start (ts)"))?,
        elapsed_ms: elapsed.ok_or_else(|| fault("has no time (t)"))?,
        is_success: success.ok_or_else(|| fault("has no success (s)"))?,
        code: &code,
        received,
        sent,
        threads,
        url: "",
    });
    Ok(())
}
