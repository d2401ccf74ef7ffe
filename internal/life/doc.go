// Package life makes archives in the Agent Life Format of what agents remember,
// and brings them back: OpenClaw workspaces, ZeroClaw's forms, and this
// program's own agents.
//
// What must last from one export to the next (stable ids, versions of identity
// and profiles, what Markdown cannot say of a record, the common ground of a
// merge) stands in the last archive of each agent, which is kept in a directory
// of the caller's choice.
package life
