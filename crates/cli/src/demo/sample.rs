//! The bundled sample: published results, to explore before the demo has measured anything.

use anyhow::Context;
use brewbench::{
    experiments::{from_imports::FromImports, model::ExperimentWithRuns},
    results::import::Imported,
    runs::model::RunList,
};
use brewbench_io::client::Client;
use brewbench_wire::reports::archive;
use reqwest::Method;

/// Labels of the runs; each label becomes an experiment.
const FINAL: &str = "server-bench post, final results";
const WRK: &str = "kcup post";

const INDEX: &str = include_str!("../../../../samples/published/index.json");

/// The files listed in the index.
const FILES: [(&str, &str); 22] = [
    ("k6-gosherve-16vcpu-16gb.txt", include_str!("../../../../samples/published/k6-gosherve-16vcpu-16gb.txt")),
    ("k6-gosherve-1vcpu-256mb.txt", include_str!("../../../../samples/published/k6-gosherve-1vcpu-256mb.txt")),
    ("k6-gosherve-2vcpu-4gb.txt", include_str!("../../../../samples/published/k6-gosherve-2vcpu-4gb.txt")),
    ("k6-gosherve-old-16vcpu-16gb.txt", include_str!("../../../../samples/published/k6-gosherve-old-16vcpu-16gb.txt")),
    ("k6-gosherve-old-1vcpu-256mb.txt", include_str!("../../../../samples/published/k6-gosherve-old-1vcpu-256mb.txt")),
    ("k6-gosherve-old-2vcpu-4gb.txt", include_str!("../../../../samples/published/k6-gosherve-old-2vcpu-4gb.txt")),
    ("k6-gosherve-old-workstation.txt", include_str!("../../../../samples/published/k6-gosherve-old-workstation.txt")),
    (
        "k6-gosherve-redirects-fixed-workstation.txt",
        include_str!("../../../../samples/published/k6-gosherve-redirects-fixed-workstation.txt"),
    ),
    ("k6-gosherve-workstation.txt", include_str!("../../../../samples/published/k6-gosherve-workstation.txt")),
    ("k6-servy-16vcpu-16gb.txt", include_str!("../../../../samples/published/k6-servy-16vcpu-16gb.txt")),
    ("k6-servy-1vcpu-256mb.txt", include_str!("../../../../samples/published/k6-servy-1vcpu-256mb.txt")),
    ("k6-servy-2vcpu-4gb.txt", include_str!("../../../../samples/published/k6-servy-2vcpu-4gb.txt")),
    ("k6-servy-workstation.txt", include_str!("../../../../samples/published/k6-servy-workstation.txt")),
    ("wrk-kcup-go-fasthttp-100K.txt", include_str!("../../../../samples/published/wrk-kcup-go-fasthttp-100K.txt")),
    ("wrk-kcup-go-fasthttp-10K.txt", include_str!("../../../../samples/published/wrk-kcup-go-fasthttp-10K.txt")),
    ("wrk-kcup-go-fasthttp-1M.txt", include_str!("../../../../samples/published/wrk-kcup-go-fasthttp-1M.txt")),
    ("wrk-kcup-go-nethttp-10K.txt", include_str!("../../../../samples/published/wrk-kcup-go-nethttp-10K.txt")),
    ("wrk-kcup-rust-100K.txt", include_str!("../../../../samples/published/wrk-kcup-rust-100K.txt")),
    ("wrk-kcup-rust-10K.txt", include_str!("../../../../samples/published/wrk-kcup-rust-10K.txt")),
    ("wrk-kcup-rust-1M.txt", include_str!("../../../../samples/published/wrk-kcup-rust-1M.txt")),
    (
        "wrk-kcup-rust-lazy-static-1M-local.txt",
        include_str!("../../../../samples/published/wrk-kcup-rust-lazy-static-1M-local.txt"),
    ),
    (
        "wrk-kcup-rust-pre-lazy-static-1M-local.txt",
        include_str!("../../../../samples/published/wrk-kcup-rust-pre-lazy-static-1M-local.txt"),
    ),
];

/// Imports the sample as experiments unless it exists.
pub async fn import(client: &Client) -> anyhow::Result<()> {
    if is_imported(client).await? {
        return Ok(());
    }
    let files = [("index.json", INDEX)].into_iter().chain(FILES).map(|(name, text)| (name, text.as_bytes()));
    let request = client.request(Method::POST, "api/v1/runs/import").body(archive::pack(files)?);
    let Imported { runs, .. } = client.json(request).await.context("cannot import the sample")?;
    for (label, name) in [(WRK, "sample: three servers under wrk"), (FINAL, "sample: gosherve and servy under k6")] {
        let own = runs.iter().filter(|run| run.labels.iter().any(|other| other == label));
        let gathering = FromImports { name: name.to_owned(), runs: own.map(|run| run.id.clone()).collect() };
        let _: ExperimentWithRuns = client.post("api/v1/experiments/from-imports", &gathering).await?;
    }
    Ok(())
}

async fn is_imported(client: &Client) -> anyhow::Result<bool> {
    let request = client.request(Method::GET, "api/v1/runs").query(&[("label", FINAL), ("limit", "1")]);
    Ok(!client.json::<RunList>(request).await?.runs.is_empty())
}

#[cfg(test)]
mod tests {
    use brewbench::results::import::folder;
    use brewbench_wire::reports::archive::ArchivedFile;

    use super::*;

    #[test]
    fn embedded_sample_matches_the_folder() {
        let files = FILES.map(|(path, text)| ArchivedFile { path: path.to_owned(), bytes: text.as_bytes().to_vec() });
        let found = folder::read(INDEX, &files).expect("a valid folder").found;
        assert_eq!(found.len(), FILES.len(), "each file is in the index");
        assert!(found.iter().filter(|file| file.about.labels == [FINAL]).count() == 9);
        assert!(found.iter().all(|file| file.about.repetition == 1), "each cell is one repetition");
        for (name, text) in FILES {
            let path = format!("{}/../../samples/published/{name}", env!("CARGO_MANIFEST_DIR"));
            assert_eq!(std::fs::read_to_string(path).expect("a file"), text);
        }
    }
}
