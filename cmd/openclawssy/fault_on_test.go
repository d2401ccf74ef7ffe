//go:build fault && linux

package main

import "github.com/openclawssy/openclawssy/internal/judge"

// children are the parts that this binary plays in the rows of the fault matrix.
var children = map[string]judge.Part{"ingest": ingestPart, "life": lifePart, "day": dayPart, "many": manyPart, "stubborn": stubbornPart,
	"vacuum": vacuumPart, "exclusive": exclusivePart, "alone": alonePart, "burst": burstPart, "jam": jamPart, "erasing": erasingPart}
