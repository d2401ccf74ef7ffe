// Package journal is a durable log of JSON lines in one directory, one file a
// UTC day, written by any number of processes at once.
//
// A line is a JSON object whose last two members the journal adds itself:
//
//	{…,"seq":41,"crc":"9a3c01fe"}
//
// seq counts the lines of the whole journal from 1, without a gap and over all
// files; it is the order of the log and does not depend on any clock. crc is
// the CRC-32C of everything in the line before `,"crc"`, in hex.
//
// Lines are written in groups: one goroutine per open Journal takes what is
// queued, locks the directory against other processes, writes, calls fdatasync
// and unlocks. What a writer leaves behind when it is killed in the middle of
// a group (the torn tail) is moved aside by the next one, before it appends.
//
// Beside the segments (2026-05-08.jsonl) lies the file journal.head: the lock,
// and a note of where the durable log ends. Torn tails are kept in *.torn.
package journal
