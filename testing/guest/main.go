// The first process of a guest in the tests of virtual machines: loads drivers, brings the network up, prints the
// guest's size for the agent, and starts /target. When that ends, so does the guest.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

func main() {
	for _, mount := range [][2]string{{"/proc", "proc"}, {"/sys", "sysfs"}, {"/dev", "devtmpfs"}} {
		_ = os.MkdirAll(mount[0], 0o755)
		_ = syscall.Mount(mount[1], mount[0], mount[1], 0, "")
	}
	loadModules()
	switch option("fault") {
	case "hang":
		for {
			time.Sleep(time.Hour)
		}
	case "panic":
		os.Exit(3)
	}
	for _, disk := range []string{"/dev/vda", "/dev/vda1", "/dev/vdb", "/dev/vdb1"} {
		inspect(disk)
	}
	must(up("lo", "127.0.0.1", "255.0.0.0"))
	for begun := time.Now(); up("eth0", "10.0.2.15", "255.255.255.0") != nil; time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			fmt.Println("guest: no network")
			break
		}
	}
	must(route("10.0.2.2"))
	var name syscall.Utsname
	must(syscall.Uname(&name))
	fmt.Printf("brewbench-guest: cpus=%d memory_bytes=%d kernel=%s\n", cpus(), memory(), text(name.Release[:]))
	target := exec.Command("/target", "--listen", "0.0.0.0:8080")
	target.Stdout, target.Stderr = os.Stdout, os.Stderr
	if after, err := time.ParseDuration(option("poweroff")); err == nil {
		time.AfterFunc(after, func() { _ = syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF) })
	}
	fmt.Println("guest: the target ended:", target.Run())
	_ = syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
}

// inspect prints the files of cloud-init on a disk, and tries to change it.
func inspect(disk string) {
	_ = os.Mkdir("/disk", 0o755)
	if syscall.Mount(disk, "/disk", "vfat", 0, "") != nil && syscall.Mount(disk, "/disk", "vfat", syscall.MS_RDONLY, "") != nil {
		return
	}
	if data, err := os.ReadFile("/disk/user-data"); err == nil {
		fmt.Printf("guest: %s has user-data: %s\n", disk, strings.TrimSpace(string(data)))
	}
	fmt.Printf("guest: %s is writable: %t\n", disk, os.WriteFile("/disk/changed", []byte("by the guest"), 0o600) == nil)
	_ = syscall.Unmount("/disk", 0)
}

func must(err error) {
	if err != nil {
		fmt.Println("guest:", err)
	}
}

// option returns guest.NAME=VALUE of the kernel's command line.
func option(name string) string {
	line, _ := os.ReadFile("/proc/cmdline")
	for _, word := range strings.Fields(string(line)) {
		if value, found := strings.CutPrefix(word, "guest."+name+"="); found {
			return value
		}
	}
	return ""
}

func loadModules() {
	modules, _ := filepath.Glob("/modules/*.ko")
	sort.Strings(modules)
	for _, path := range modules {
		content, err := os.ReadFile(path)
		if err != nil || len(content) == 0 {
			fmt.Println("guest:", path, err)
			continue
		}
		none := []byte{0}
		_, _, failed := syscall.Syscall(syscall.SYS_INIT_MODULE, uintptr(unsafe.Pointer(&content[0])),
			uintptr(len(content)), uintptr(unsafe.Pointer(&none[0])))
		if failed != 0 {
			fmt.Println("guest:", path, failed)
		}
		_ = os.Remove(path)
	}
}

// address returns a struct sockaddr_in.
func address(ip string) (raw [16]byte) {
	raw[0] = syscall.AF_INET
	for i, part := range strings.Split(ip, ".") {
		number, _ := strconv.Atoi(part)
		raw[4+i] = byte(number)
	}
	return raw
}

func control(request uintptr, argument unsafe.Pointer) error {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(socket) }()
	if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, uintptr(socket), request, uintptr(argument)); failed != 0 {
		return failed
	}
	return nil
}

// up gives an interface an address and switches it on.
func up(name, ip, mask string) error {
	var request struct {
		name [16]byte
		data [24]byte
	}
	copy(request.name[:15], name)
	for _, step := range []struct {
		request uintptr
		ip      string
	}{{syscall.SIOCSIFADDR, ip}, {syscall.SIOCSIFNETMASK, mask}} {
		raw := address(step.ip)
		copy(request.data[:], raw[:])
		if err := control(step.request, unsafe.Pointer(&request)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	request.data = [24]byte{syscall.IFF_UP | syscall.IFF_RUNNING}
	return control(syscall.SIOCSIFFLAGS, unsafe.Pointer(&request))
}

// route sets the default route by a struct rtentry.
func route(gateway string) error {
	var entry [120]byte
	any, by := address("0.0.0.0"), address(gateway)
	copy(entry[8:], any[:])
	copy(entry[24:], by[:])
	copy(entry[40:], any[:])
	const upGateway = 3
	entry[56] = upGateway
	return control(syscall.SIOCADDRT, unsafe.Pointer(&entry))
}

func cpus() int {
	folders, _ := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*")
	online := 0
	for _, folder := range folders {
		// The first CPU has no such file: it can't be switched off.
		if state, err := os.ReadFile(folder + "/online"); err != nil || strings.TrimSpace(string(state)) == "1" {
			online++
		}
	}
	return online
}

func memory() uint64 {
	info, _ := os.ReadFile("/proc/meminfo")
	for _, line := range strings.Split(string(info), "\n") {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "MemTotal:" {
			kib, _ := strconv.ParseUint(words[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}

func text(letters []int8) string {
	var text strings.Builder
	for _, letter := range letters {
		if letter == 0 {
			break
		}
		text.WriteByte(byte(letter))
	}
	return text.String()
}
