package events

const childVariable = "EVENTS_TEST_CHILD"

func runChild(string) int { return 0 }
