//! `brewbench webhook …`

use clap::Subcommand;
use reqwest::Method;

use super::table::{Align, cut, plain, table, with_below};
use crate::{
    alerts::{Delivery, DeliveryList, MadeWebhook, NewWebhook, Webhook as WebhookData, WebhookList, model::Event},
    cli::common::Common,
    web::time_ago::exact,
};

/// Commands about who is told elsewhere.
#[derive(Debug, Subcommand)]
pub enum Webhook {
    /// Have events sent to an address; the secret that they are signed with is shown once
    Add {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// Where to: https, on the public internet unless the server was told otherwise by --webhooks-to
        address: String,
        /// Only these: agent.away, agent.back, queue.standstill, queue.moving, experiment.finished; repeat for several
        #[arg(long = "event", value_name = "EVENT")]
        events: Vec<Event>,
    },
    /// List them, without their secrets
    List {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
    },
    /// Send a test event now, once; ends with 1 if it was not taken
    Test {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The number of the webhook, as the list shows it
        id: i64,
    },
    /// What was sent to one within a week, and what is to be sent
    Deliveries {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The number of the webhook, as the list shows it
        id: i64,
    },
    /// Remove one, with what was to be sent to it
    Remove {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The number of the webhook, as the list shows it
        id: i64,
    },
}

const PATH: &str = "api/v1/webhooks";

impl Webhook {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Add { common, address: url, events } => {
                let made: MadeWebhook = common.connect()?.client.post(PATH, &NewWebhook { url, events }).await?;
                eprintln!("the webhook {} is told; its events are signed with this secret:", made.webhook.id);
                common.print(&made, |made| format!("{}\n", made.secret))
            }
            Self::List { common } => {
                let list: WebhookList = common.connect()?.client.get(PATH).await?;
                common.print(&list, rows)
            }
            Self::Test { common, id } => {
                let client = common.connect()?.client;
                let sent: Delivery = client.json(client.request(Method::POST, &format!("{PATH}/{id}/test"))).await?;
                common.print(&sent, |_| String::new())?;
                match &sent.error {
                    None => eprintln!("it was taken: {}", answer(&sent)),
                    Some(error) => anyhow::bail!("it was not taken: {}: {}", answer(&sent), plain(error)),
                }
                Ok(())
            }
            Self::Deliveries { common, id } => {
                let list: DeliveryList = common.connect()?.client.get(&format!("{PATH}/{id}/deliveries")).await?;
                common.print(&list, deliveries)
            }
            Self::Remove { common, id } => {
                common.connect()?.client.delete(&format!("{PATH}/{id}")).await?;
                eprintln!("the webhook {id} is told nothing any more");
                Ok(())
            }
        }
    }
}

fn answer(sent: &Delivery) -> String {
    sent.status.map_or("no answer".to_owned(), |status| format!("answered {status}"))
}

fn rows(list: &WebhookList) -> String {
    if list.webhooks.is_empty() {
        return "nobody is told elsewhere: brewbench webhook add URL\n".to_owned();
    }
    let head = [("id", Align::Right), ("address", Align::Left), ("last", Align::Left)];
    let row = |webhook: &WebhookData| {
        let latest = webhook.last.as_ref().map(|last| format!("{} {}", plain(&last.event), last.state.words()));
        vec![webhook.id.to_string(), cut(&webhook.url, 40), latest.unwrap_or_else(|| "–".to_owned())]
    };
    let lines = table(&head, &list.webhooks.iter().map(row).collect::<Vec<_>>());
    let told = |webhook: &WebhookData| webhook.events.iter().map(|event| event.as_str()).collect::<Vec<_>>().join(", ");
    with_below(&lines, list.webhooks.iter().map(told))
}

fn deliveries(list: &DeliveryList) -> String {
    if list.deliveries.is_empty() {
        return "nothing was sent to it within a week\n".to_owned();
    }
    let head = [
        ("event", Align::Left),
        ("happened", Align::Left),
        ("state", Align::Left),
        ("tries", Align::Right),
        ("answer", Align::Right),
    ];
    let row = |delivery: &Delivery| {
        vec![
            plain(&delivery.event),
            exact(Some(delivery.created_at_ms)),
            delivery.state.words().to_owned(),
            delivery.tries.to_string(),
            delivery.status.map_or("–".to_owned(), |status| status.to_string()),
        ]
    };
    let lines = table(&head, &list.deliveries.iter().map(row).collect::<Vec<_>>());
    with_below(&lines, list.deliveries.iter().map(|delivery| plain(delivery.error.as_deref().unwrap_or_default())))
}
