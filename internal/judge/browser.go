package judge

import (
	"os/exec"
	"testing"
)

// Chromium returns the browser that tests of pages run in. Where there is none the
// test is skipped, and says in capitals what was not tested.
func Chromium(t testing.TB, what string) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("SKIPPED: %s WAS NOT TESTED. There is no Chromium here; install it with: apt-get install chromium", what)
	return ""
}
