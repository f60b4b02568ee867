//! The books as text: aligned columns, exact dollars.

use std::fmt::Write;

use wakati_ledger::Books;
use wakati_protocol::money::NanoUsd;

/// All of the books, for a terminal.
#[must_use]
pub fn books_as_text(books: &Books) -> String {
    let mut out = String::new();
    let dollars = |amount: NanoUsd| format!("${amount}");
    let mut rows = vec![row(["consumer", "available", "held", "charged"])];
    for c in &books.consumers {
        rows.push(vec![c.account.clone(), dollars(c.available), dollars(c.held), dollars(c.charged)]);
    }
    table(&mut out, &rows);
    let mut rows = vec![row(["owner", "node", "earned", "receipts"])];
    for owner in &books.owners {
        rows.push(vec![owner.owner.clone(), String::new(), dollars(owner.earned), String::new()]);
        for node in &owner.nodes {
            let receipts = node.receipts.to_string();
            rows.push(vec![String::new(), short(&node.node), dollars(node.earned), receipts]);
        }
    }
    table(&mut out, &rows);
    let mut rows = vec![row(["job", "model", "prompt", "answer", "charge", "finish", "attempts"])];
    for job in &books.jobs {
        let attempts: Vec<String> = job
            .attempts
            .iter()
            .map(|a| {
                let positions = a.positions.map_or_else(|| "?".to_owned(), |n| n.to_string());
                let pay = a.pay.map_or_else(|| "open".to_owned(), dollars);
                format!("{}: {positions} from {} {pay}", short(&a.node), a.first_position)
            })
            .collect();
        rows.push(vec![
            job.job.to_string(),
            job.model.clone(),
            job.prompt_tokens.to_string(),
            job.completion_tokens.to_string(),
            job.charge.map_or_else(|| "open".to_owned(), dollars),
            job.finish.clone(),
            attempts.join(", "),
        ]);
    }
    table(&mut out, &rows);
    let _ = writeln!(out, "fee ${}   absorption ${}", books.fee, books.absorption);
    out
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn short(node: &wakati_protocol::ids::NodeId) -> String {
    node.to_string()[..12].to_owned()
}

fn table(out: &mut String, rows: &[Vec<String>]) {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
    }
    out.push('\n');
}
