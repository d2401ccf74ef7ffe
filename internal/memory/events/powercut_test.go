//go:build fault

package events

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The FS_IOC_SHUTDOWN request of ext4, and the flag that drops everything which
// was not synced, as a power cut does.
const (
	shutdownRequest = 0x8004587d
	noLogFlush      = 2
)

// Power is cut while processes append: what they had acknowledged is there.
func TestPowerCut(t *testing.T) {
	image, mount := filepath.Join(t.TempDir(), "image"), t.TempDir()
	for _, args := range [][]string{{"truncate", "-s", "1G", image}, {"mkfs.ext4", "-q", image}, {"mount", "-o", "loop,commit=600", image, mount}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED, NOT TESTED: power cuts; %v: %v %s", args, err, out)
		}
	}
	t.Cleanup(func() { run(t, "umount", mount) })
	var acked []string
	const cuts = 30
	for range cuts {
		children := []*child{startChild(t, filepath.Join(mount, "a", "events")), startChild(t, filepath.Join(mount, "a", "events"))}
		for _, c := range children {
			c.wait(t)
		}
		<-time.After(rand.N(60 * time.Millisecond))
		// An fsync that is under way during the cut may return nil in vain, to any
		// program: what counts was acknowledged before it.
		for _, c := range children {
			acked = append(acked, c.acked()...)
		}
		cutPower(t, mount)
		for _, c := range children {
			<-c.read
			if err := c.cmd.Wait(); err == nil {
				t.Fatal("the child has not met the power cut")
			}
		}
		run(t, "umount", mount)
		run(t, "mount", "-o", "loop,commit=600", image, mount)
	}
	checkAcknowledged(t, filepath.Join(mount, "a", "events"), acked)
	t.Logf("%d cuts, %d acknowledged events, 0 lost", cuts, len(acked))
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("%s %v: %w: %s", name, args, err, out))
	}
}

func cutPower(t *testing.T, mount string) {
	t.Helper()
	dir, err := os.Open(mount)
	if err != nil {
		t.Fatal(err)
	}
	flag := uint32(noLogFlush)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), shutdownRequest, uintptr(unsafe.Pointer(&flag)))
	if err := dir.Close(); err != nil || errno != 0 {
		t.Fatal(errno, err)
	}
}
