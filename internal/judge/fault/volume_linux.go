package fault

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Volume is an ext4 file system in a file, whose power can be cut. It needs Root
// and Loop. It is not safe for concurrent use.
type Volume struct {
	Dir     string // where it is mounted
	image   string
	options string
	t       testing.TB
}

// NewVolume makes a disk of so many megabytes, mounts it with options of mount(8)
// beside "loop", and takes it away with the test.
func NewVolume(t testing.TB, megabytes int64, options string) *Volume {
	t.Helper()
	base := Dir(t)
	d := &Volume{t: t, image: filepath.Join(base, "image"), Dir: filepath.Join(base, "disk"), options: strings.Trim("loop,"+options, ",")}
	if err := os.Mkdir(d.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(d.image)
	if err == nil {
		err = errors.Join(f.Truncate(megabytes<<20), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	must(t, "mkfs.ext4", "-q", "-F", d.image)
	d.mount()
	t.Cleanup(func() { must(t, "umount", "-l", d.Dir) })
	return d
}

func (d *Volume) mount() { must(d.t, "mount", "-o", d.options, d.image, d.Dir) }

// shutdown is the request FS_IOC_SHUTDOWN, and noFlush its argument that leaves
// what stands in the journal's memory unwritten.
const (
	shutdown = 0x8004587d
	noFlush  = 2
)

// Cut cuts the power: what no fsync has made durable is gone. stop is called once
// the disk is dead, and must end every process that has a file open on it; then
// the disk is mounted again.
func (d *Volume) Cut(stop func()) {
	d.t.Helper()
	f, err := os.Open(d.Dir)
	if err != nil {
		d.t.Fatal(err)
	}
	how := uint32(noFlush)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), shutdown, uintptr(unsafe.Pointer(&how)))
	if err := f.Close(); err != nil {
		d.t.Fatal(err)
	}
	if errno != 0 {
		d.t.Fatalf("cut the power of %s: %v", d.Dir, errno)
	}
	stop()
	must(d.t, "umount", d.Dir)
	d.mount()
}

// ReadOnly makes the disk read-only, or writable again, while files are open.
func (d *Volume) ReadOnly(yes bool) error {
	mode := "remount,rw"
	if yes {
		mode = "remount,ro"
	}
	out, err := exec.Command("mount", "-o", mode, d.Dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mount -o %s: %w: %s", mode, err, out)
	}
	return nil
}

// SmallDisk mounts a file system in memory that is full after so many kilobytes,
// and takes it away with the test. It needs Root.
func SmallDisk(t testing.TB, kilobytes int) string {
	t.Helper()
	dir := t.TempDir()
	must(t, "mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dk,mode=0700", kilobytes), "fault", dir)
	t.Cleanup(func() { must(t, "umount", "-l", dir) })
	return dir
}

func must(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}
