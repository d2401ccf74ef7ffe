package fault

// Matrix returns the rows, in the order of the table.
func Matrix() []Row {
	return []Row{
		{ID: "F15", Title: "data races, and what a long-lived process leaves open", Package: "cmd/openclawssy", Lane: CPU},
	}
}
