package judge

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"testing"
	"time"
)

// TLSFault is what is wrong with a TLS server's certificate.
type TLSFault string

// The faults.
const (
	NoFault   TLSFault = ""
	Untrusted TLSFault = "untrusted" // signed by nobody that the client knows
	Expired   TLSFault = "expired"
	OtherName TLSFault = "other name" // for another host
)

// NewTLSServer starts a stub on a free port of loopback that speaks TLS with a
// certificate of the given fault, and ends it with the test. The client is to
// trust roots.
func NewTLSServer(t testing.TB, fault TLSFault) (s *Server, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "judge"},
		NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	switch fault {
	case Expired:
		cert.NotAfter = now.Add(-24 * time.Hour)
	case OtherName:
		cert.IPAddresses, cert.DNSNames = nil, []string{"other.example"}
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	if fault != Untrusted {
		parsed, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		roots.AddCert(parsed)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s = start(tls.NewListener(l, config), "https://"+l.Addr().String()+"/v1", log.New(io.Discard, "", 0))
	closeWith(t, s)
	return s, roots
}
