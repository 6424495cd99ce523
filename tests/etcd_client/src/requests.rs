//! The requests of the clients.

use crate::{PATIENCE, Shared};
use etcd_client::{
    Client, Compare, CompareOp, DeleteOptions, Error, GetOptions, GetResponse, LeaseGrantOptions, PutOptions, Txn,
    TxnOp,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Pseudo-random numbers (Marsaglia's xorshift).
pub struct Dice(u64, u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15), 0)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn key(&mut self) -> String {
        format!("{}/{}", ["jobs", "locks"][self.below(2) as usize], self.below(6))
    }

    /// A value that no other request writes.
    fn value(&mut self, seed: u64) -> String {
        self.1 += 1;
        // Some values are too long to be recorded whole.
        let tail = if self.below(8) == 0 { "-and-a-long-tail-behind-it" } else { "" };
        format!("{seed}-{}{tail}", self.1)
    }
}

/// Sends requests until it is stopped.
pub async fn ask(mut client: Client, mut dice: Dice, shared: Arc<Shared>) {
    let seed = dice.below(1_000_000);
    while !shared.stop.load(Ordering::Relaxed) {
        match tokio::time::timeout(PATIENCE, one(&mut client, &mut dice, seed, &shared)).await {
            Ok(Ok(())) => tokio::time::sleep(Duration::from_millis(4)).await,
            _ => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn one(client: &mut Client, dice: &mut Dice, seed: u64, shared: &Shared) -> Result<(), Error> {
    let (key, value) = (dice.key(), dice.value(seed));
    match dice.below(24) {
        0..=6 => {
            client.put(key, value, None).await?;
        }
        7..=11 => {
            client.get(key, None).await?;
        }
        12 | 13 => {
            let limit = dice.below(3) as i64 * 3;
            let answer = client.get("jobs/", Some(GetOptions::new().with_prefix().with_limit(limit))).await?;
            shared.head.fetch_max(revision(&answer), Ordering::Relaxed);
        }
        14..=17 => {
            let found = client.get(key.as_str(), None).await?;
            let number = found.kvs().first().map_or(0, |pair| pair.mod_revision());
            let same = Compare::mod_revision(key.as_str(), CompareOp::Equal, number);
            let (put, get) = (TxnOp::put(key.as_str(), value, None), TxnOp::get(key.as_str(), None));
            client.txn(Txn::new().when([same]).and_then([put]).or_else([get])).await?;
        }
        18 => {
            let (from, to) = (key, dice.key());
            if from != to {
                let there = Compare::version(from.as_str(), CompareOp::Greater, 0);
                let both = [TxnOp::delete(from, None), TxnOp::put(to, value, None)];
                client.txn(Txn::new().when([there]).and_then(both)).await?;
            }
        }
        19 | 20 => {
            client.delete(key, None).await?;
        }
        21 if dice.below(4) == 0 => {
            client.delete("locks/", Some(DeleteOptions::new().with_prefix())).await?;
        }
        22 => {
            let lease = client.lease_grant(3600, None::<LeaseGrantOptions>).await?.id();
            client.put(key, value, Some(PutOptions::new().with_lease(lease))).await?;
            if dice.below(2) == 0 {
                client.lease_revoke(lease).await?;
            }
        }
        23 => {
            let old = shared.head.load(Ordering::Relaxed) - dice.below(20) as i64;
            if old > 1 {
                client.get("jobs/", Some(GetOptions::new().with_prefix().with_revision(old))).await?;
            }
            client.get("locks/", Some(GetOptions::new().with_prefix().with_count_only())).await?;
            client.get(key, Some(GetOptions::new().with_serializable())).await?;
        }
        _ => {}
    }
    Ok(())
}

fn revision(answer: &GetResponse) -> i64 {
    answer.header().map_or(0, |header| header.revision())
}

/// The last revision, however long etcd takes to answer.
pub async fn last(mut client: Client) -> i64 {
    loop {
        if let Ok(Ok(answer)) = tokio::time::timeout(PATIENCE, client.get("jobs/", None)).await {
            return revision(&answer);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
