//! `brewbench webhook …`

use brewbench::{
    alerts::{CreatedWebhook, Delivery, DeliveryList, NewWebhook, Webhook as WebhookData, WebhookList, model::Event},
    web::time_ago::exact,
};
use clap::Subcommand;
use reqwest::Method;

use super::table::{cut, plain, table, with_below};
use crate::common::Common;

/// Manage webhooks.
#[derive(Debug, Subcommand)]
pub enum Webhook {
    /// Add a webhook; the secret that signs its events is shown once
    #[command(alias = "add")]
    New {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// URL: https on the public internet, or a network that the server allows with --webhooks-to
        address: String,
        /// Event to send, repeatable: agent.disconnected, agent.connected, queue.stalled, queue.resumed,
        /// experiment.finished [default: all]
        #[arg(long = "event", value_name = "EVENT")]
        events: Vec<Event>,
    },
    /// List webhooks, without their secrets
    List {
        /// Server and output format
        #[command(flatten)]
        common: Common,
    },
    /// Send a test event once; exits with 1 if it was not accepted
    Test {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// Id of the webhook
        id: i64,
    },
    /// List pending deliveries and those of the last week
    Deliveries {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// Id of the webhook
        id: i64,
    },
    /// Delete a webhook and its pending deliveries
    #[command(alias = "remove")]
    Delete {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// Id of the webhook
        id: i64,
    },
}

const PATH: &str = "api/v1/webhooks";

impl Webhook {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::New { common, address: url, events } => {
                let added: CreatedWebhook = common.connect()?.client.post(PATH, &NewWebhook { url, events }).await?;
                eprintln!("added webhook {}; its events are signed with this secret:", added.webhook.id);
                common.print(&added, |added| format!("{}\n", added.secret))
            }
            Self::List { common } => common.show(PATH, rows).await,
            Self::Test { common, id } => {
                let client = common.connect()?.client;
                let sent: Delivery = client.json(client.request(Method::POST, &format!("{PATH}/{id}/test"))).await?;
                common.print(&sent, |_| String::new())?;
                match &sent.error {
                    None => eprintln!("accepted: {}", response(&sent)),
                    Some(error) => {
                        anyhow::bail!("the test event was not accepted: {}: {}", response(&sent), plain(error))
                    }
                }
                Ok(())
            }
            Self::Deliveries { common, id } => common.show(&format!("{PATH}/{id}/deliveries"), deliveries).await,
            Self::Delete { common, id } => {
                common.connect()?.client.delete(&format!("{PATH}/{id}")).await?;
                eprintln!("removed webhook {id}");
                Ok(())
            }
        }
    }
}

fn response(sent: &Delivery) -> String {
    sent.status.map_or("no response".to_owned(), |status| format!("status {status}"))
}

fn rows(list: &WebhookList) -> String {
    if list.webhooks.is_empty() {
        return "no webhooks; add one with: brewbench webhook new URL\n".to_owned();
    }
    let head = [">id", "address", "last delivery"];
    let row = |webhook: &WebhookData| {
        let latest = webhook.last.as_ref().map(|last| format!("{} {}", plain(&last.event), last.state.describe()));
        vec![webhook.id.to_string(), cut(&webhook.url, 40), latest.unwrap_or_else(|| "–".to_owned())]
    };
    let lines = table(&head, &list.webhooks, row);
    let events =
        |webhook: &WebhookData| webhook.events.iter().map(|event| event.as_str()).collect::<Vec<_>>().join(", ");
    with_below(&lines, list.webhooks.iter().map(events))
}

fn deliveries(list: &DeliveryList) -> String {
    if list.deliveries.is_empty() {
        return "no pending deliveries, and none in the last week\n".to_owned();
    }
    let head = ["event", "time", "state", ">attempts", ">status"];
    let row = |delivery: &Delivery| {
        vec![
            plain(&delivery.event),
            exact(Some(delivery.created_at_ms)),
            delivery.state.describe().to_owned(),
            delivery.attempts.to_string(),
            delivery.status.map_or("–".to_owned(), |status| status.to_string()),
        ]
    };
    let lines = table(&head, &list.deliveries, row);
    with_below(&lines, list.deliveries.iter().map(|delivery| plain(delivery.error.as_deref().unwrap_or_default())))
}
