// Package message lets an agent speak up: about a memory of weight that a
// checkpoint made, a memory that needs a look, a contradiction, a reminder whose
// time has come, or because it was told to.
//
// A message is written into the ledger (messages.db of the agent) in the same
// transaction as what it follows from, under a key made of agent, trigger and
// memories, so that no crash and no second process makes it twice. It is sent
// when nothing holds it: it needs a channel, a user_id and a session_id, all of
// the session of its evidence, and keeps to quiet hours, a cooldown and a daily
// cap. What is held is listed and explained, never dropped. Sent means: it stands
// in the inbox, once. From there a running chat shows it, once, and routes such
// as a webhook carry it on, at least once and under an idempotency key.
package message
