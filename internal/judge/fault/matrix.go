package fault

// Matrix returns the rows, in the order of the table.
func Matrix() []Row {
	return []Row{
		{ID: "F0", Title: "the judge itself, by eight seeded bugs", Package: "internal/judge/fault", Lane: Disk, Needs: []Need{Root, Loop, Strace}},
		{ID: "F1", Title: "kill -9 at random moments and at every Nth system call", Package: "cmd/openclawssy", Lane: Disk},
		{ID: "F2", Title: "power cuts on ext4", Package: "cmd/openclawssy", Lane: Disk, Needs: []Need{Root, Loop}},
		{ID: "F3", Title: "a disk that is full, read-only, over quota or broken; no descriptors left", Package: "cmd/openclawssy", Lane: Disk},
		{ID: "F4", Title: "bit rot, truncation and older copies of every kind of file", Package: "cmd/openclawssy", Lane: CPU},
		{ID: "F5", Title: "two processes on one agent, one of them stopped or killed; sixteen agents", Package: "cmd/openclawssy", Lane: Disk},
		{ID: "F6", Title: "a model that answers in every wrong way", Package: "cmd/openclawssy", Lane: Disk},
		{ID: "F7", Title: "secrets planted by every entry, then every byte read", Package: "cmd/openclawssy", Lane: Disk},
		{ID: "F8", Title: "hostile ids, paths, trees and links by every entry", Package: "cmd/openclawssy", Lane: CPU},
		{ID: "F9", Title: "a burst of a million events over 256 agents, on a slow disk", Package: "cmd/openclawssy", Lane: Disk},
		{ID: "F10", Title: "days and seasons of the schedule: clocks that jump, summer time, a job that hangs, one that panics", Package: "cmd/openclawssy", Lane: CPU},
		{ID: "F11", Title: "recall beside whoever locks, vacuums, stops and deletes", Package: "cmd/openclawssy", Lane: Alone},
		{ID: "F12", Title: "HTTP and MCP abuse", Package: "cmd/openclawssy", Lane: Disk},
		{ID: "F13", Title: "fuzzing of every parser", Package: "cmd/openclawssy", Lane: CPU},
		{ID: "F14", Title: "homes of every released format, opened by this build", Package: "cmd/openclawssy", Lane: CPU},
		{ID: "F15", Title: "data races, and what a long-lived process leaves open", Package: "cmd/openclawssy", Lane: CPU},
	}
}
