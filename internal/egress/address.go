package egress

import "net/netip"

// block is a range of addresses that no public host has.
type block struct {
	prefix netip.Prefix
	name   string
}

// blocks are the ranges that a name must not resolve to: the special-purpose
// registries of RFC 6890 as IANA keeps them. The first that matches names the
// address, so the metadata services of clouds come first: they stay forbidden
// where private networks are allowed.
var blocks = []block{
	{netip.MustParsePrefix("168.63.129.16/32"), "metadata"},   // Azure's wire server
	{netip.MustParsePrefix("169.254.169.254/32"), "metadata"}, // most clouds
	{netip.MustParsePrefix("100.100.100.200/32"), "metadata"}, // Alibaba
	{netip.MustParsePrefix("fd00:ec2::254/128"), "metadata"},  // AWS over IPv6
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared"}, // carrier-grade NAT
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "reserved"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("2001::/23"), "reserved"}, // Teredo is among them
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("2002::/16"), "reserved"}, // 6to4 carries any IPv4 address
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	nat64         = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052: the last four bytes are an IPv4 address
)

// forbidden names what is wrong with ip as the address of a public host, ""
// for nothing. An IPv4 address inside an IPv6 one counts as itself.
func forbidden(ip netip.Addr) string {
	ip = ip.Unmap().WithZone("")
	if nat64.Contains(ip) {
		bytes := ip.As16()
		ip = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	for _, b := range blocks {
		if b.prefix.Contains(ip) {
			return b.name
		}
	}
	if ip.Is6() && !globalUnicast.Contains(ip) {
		return "reserved"
	}
	return ""
}

// isPrivate reports whether ip is an address of a private network or of this
// machine.
func isPrivate(ip netip.Addr) bool {
	switch forbidden(ip) {
	case "private", "shared", "loopback":
		return true
	}
	return false
}
