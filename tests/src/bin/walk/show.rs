//! What is printed.

use std::io::Write as _;

use anyhow::{Context as _, bail};
use serde_json::Value;
use wakati_protocol::desk::Earning;
use wakati_protocol::money::NanoUsd;
use wakati_tests::books;
use wakati_tests::desktop::until;
use wakati_tests::house::House;
use wakati_tests::node::{Node, WARM};

/// A piece of the answer, at once.
pub fn piece(text: &str) -> anyhow::Result<()> {
    print!("{text}");
    Ok(std::io::stdout().flush()?)
}

/// How the node gave its machine back, by its own stopwatch.
pub async fn hand_over(node: &Node) -> anyhow::Result<()> {
    let recorded = until("the hand-over to be recorded", WARM, async || {
        let snapshot = node.status().await.ok()?;
        Some((snapshot.last_hand_over.clone()?, snapshot))
    });
    let (hand_over, snapshot) = recorded.await?;
    println!("\nthe first node gave the machine to {}:", hand_over.to);
    println!("  no new job   {:>5} ms after the first sign", hand_over.stopped_ms);
    println!("  worker gone  {:>5} ms", hand_over.worker_gone_ms);
    println!("  memory back  {:>5} ms", hand_over.memory_back_ms);
    println!("  {} job went on elsewhere; it says: {}", hand_over.jobs_handed_back, snapshot.sentence);
    Ok(())
}

/// Both books, each asked from its own program and database, and whether they agree.
pub async fn books(house: &House) -> anyhow::Result<()> {
    // Receipts travel after the answer: wait until they have arrived, and check every rule on the way.
    books::agree(&house.broker.books(), &house.logs()).await?;
    let broker: Value = serde_json::from_str(&house.broker.operate(&["books", "--json"]).await?)?;
    let amount = |value: &Value| value.as_i64().map(NanoUsd).context("the broker's books lack an amount");
    let jobs = broker["jobs"].as_array().context("the broker's books lack their jobs")?;
    let mut charged = NanoUsd::ZERO;
    for job in jobs {
        charged = NanoUsd(charged.0 + amount(&job["charge"])?.0);
    }
    let (fee, absorption) = (amount(&broker["fee"])?, amount(&broker["absorption"])?);
    println!("\nthe broker's books ({})", house.broker.books().display());
    println!("  the consumer paid          ${charged}");
    println!("  the platform kept          ${fee}");
    if absorption != NanoUsd::ZERO {
        println!(
            "  the platform added         ${absorption}   (a dearer node, and reading the prompt twice)"
        );
    }
    let mut earned = NanoUsd::ZERO;
    for (number, node) in house.nodes.iter().enumerate() {
        println!("the log of node {} ({})", number + 1, node.log().display());
        for row in node.earnings().await? {
            earned = NanoUsd(earned.0 + row.pay.0);
            println!("  {}", earning(&row));
        }
    }
    if charged.0 + absorption.0 != earned.0 + fee.0 {
        bail!("THE BOOKS DO NOT AGREE: {charged} + {absorption} is not {earned} + {fee}");
    }
    let added = if absorption == NanoUsd::ZERO { String::new() } else { format!(" + added ${absorption}") };
    println!("they agree: paid ${charged}{added} = earned ${earned} + kept ${fee}");
    Ok(())
}

fn earning(row: &Earning) -> String {
    let last = row.first_position + row.positions;
    format!("earned ${} for tokens {} to {last} of job {}", row.pay, row.first_position + 1, row.job)
}

/// What to try while everything runs.
pub fn what_next(house: &House) {
    let (url, key, model) = (house.broker.url(), &house.key, &house.model);
    println!(
        "\ntry it yourself:\n\n  curl -N {url}/v1/chat/completions -H 'Authorization: Bearer {key}' \\\n    \
         -H 'Content-Type: application/json' \\\n    -d '{{\"model\": \"{model}\", \"stream\": true, \
         \"messages\": [{{\"role\": \"user\", \"content\": \"Hello!\"}}]}}'\n\n  \
         from openai import OpenAI\n  client = OpenAI(base_url=\"{url}/v1\", api_key=\"{key}\")\n  \
         print(client.chat.completions.create(model=\"{model}\",\n      \
         messages=[{{\"role\": \"user\", \"content\": \"Hello!\"}}]).choices[0].message.content)"
    );
}
