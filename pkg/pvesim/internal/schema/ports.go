package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxPorts is how many ports iptables takes in one rule; a range counts as two.
const maxPorts = 15

// CheckPorts returns why a list of source ports is refused, or "".
func CheckPorts(list string) string { return checkPorts(list, nil) }

// CheckDestinationPorts returns why a list of destination ports is refused, or "". It may be an ICMP type as well.
func CheckDestinationPorts(list string) string {
	return checkPorts(list, func(item string) bool { return IsICMPType(item) || IsICMPv6Type(item) })
}

// checkPorts is PVE::Firewall::parse_port_name_number_or_range.
func checkPorts(list string, icmp func(string) bool) string {
	if strings.HasSuffix(list, ",") || list == "" {
		return "extraneous commas in list"
	}
	count, types := 0, 0
	for _, item := range strings.Split(list, ",") {
		from, to, isRange := strings.Cut(item, ":")
		switch {
		case isRange && isDigits(from) && isDigits(to):
			count += 2
			if msg := rangeProblem(from, to); msg != "" {
				return msg
			}
		case isDigits(item):
			count++
			if !isPort(item) {
				return fmt.Sprintf("invalid port '%s'", item)
			}
		case icmp != nil && icmp(item):
			types++
		case !slices.Contains(services(), item):
			return fmt.Sprintf("invalid port '%s'", item)
		}
	}
	if types > 0 && count > 0 {
		return "ICMP ports not allowed in port range"
	}
	return unless(count <= maxPorts, "too many entries in port list (> 15 numbers)")
}

func rangeProblem(from, to string) string {
	for _, p := range []string{from, to} {
		if !isPort(p) {
			return fmt.Sprintf("invalid port '%s'", p)
		}
	}
	a, _ := strconv.Atoi(from)
	b, _ := strconv.Atoi(to)
	return unless(a <= b, fmt.Sprintf("backwards range '%s:%s' not allowed, did you mean '%s:%s'?", from, to, to, from))
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func isPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n <= 65535
}

// CheckProtocol returns why the name or number of an IP protocol is refused, or "".
func CheckProtocol(value string) string {
	if value == "" || slices.Contains(protocols(), value) {
		return ""
	}
	if n, err := strconv.Atoi(value); err == nil && slices.Contains(protocolNumbers(), n) && strconv.Itoa(n) == value {
		return ""
	}
	return fmt.Sprintf("unknown protocol '%s'", value)
}

// protocols are the names in /etc/protocols of Debian, and icmpv6.
func protocols() []string {
	return strings.Fields(`ip icmp igmp ggp ipencap st tcp egp igp pup udp hmp xns-idp rdp iso-tp4 dccp xtp ddp idpr-cmtp ipv6
		ipv6-route ipv6-frag idrp rsvp gre esp ah skip ipv6-icmp ipv6-nonxt ipv6-opts rspf vmtp eigrp ospf ax.25 ipip etherip encap
		pim ipcomp vrrp l2tp isis sctp fc mobility-header udplite mpls-in-ip manet hip shim6 wesp rohc ethernet icmpv6`)
}

// protocolNumbers are the numbers in /etc/protocols of Debian.
func protocolNumbers() []int {
	return []int{
		0, 1, 2, 3, 4, 5, 6, 8, 9, 12, 17, 20, 22, 27, 29, 33, 36, 37, 38, 41, 43, 44, 45, 46, 47, 50, 51, 57, 58, 59, 60, 73, 81, 88, 89,
		93, 94, 97, 98, 103, 108, 112, 115, 124, 132, 133, 135, 136, 137, 138, 139, 140, 141, 142, 143,
	}
}

// services are the names in /etc/services of Debian that one meets in firewall rules.
func services() []string {
	return strings.Fields(`tcpmux echo discard systat daytime netstat qotd chargen ftp-data ftp ssh telnet smtp time whois tacacs domain
		bootps bootpc tftp gopher finger http kerberos iso-tsap acr-nema pop3 sunrpc auth nntp ntp epmap netbios-ns netbios-dgm
		netbios-ssn imap2 snmp snmp-trap cmip-man cmip-agent mailq xdmcp bgp smux qmtp z3950 ipx ptp-event ptp-general pawserv zserv
		rpc2portmap codaauth2 clearcase ldap svrloc https snpp microsoft-ds kpasswd submissions saft isakmp rtsp nqs asf-rmcp qotd
		login exec shell syslog printer talk ntalk gdomap uucp klogin kshell dhcpv6-client dhcpv6-server afpovertcp nntps submission
		ldaps tinc silc kerberos-adm domain-s rsync ftps-data ftps telnets imaps pop3s socks proofd rootd openvpn rmiregistry
		lotusnote ms-sql-s ms-sql-m ingreslock datametrics sa-msg-port kermit groupwise l2f radius radius-acct cisco-sccp nfs gnunet
		rtcm-sc104 gsigatekeeper gris cvspserver venus venus-se codasrv codasrv-se mon zebrasrv zebra ripd ripngd ospfd bgpd ospf6d
		dict f5-globalsite gsiftp gpsd gds-db icpv2 isns iscsi-target mysql ms-wbt-server nut distcc daap svn suucp sysrqd sieve epmd
		remctl f5-iquery ntske ipsec-nat-t iax mtn radmin-port sip sip-tls xmpp-client xmpp-server cfengine mdns postgresql amqps
		amqp freeciv x11 gnutella-svc gnutella-rtr redis sge-qmaster babel dircproxy bbs http-alt puppet zabbix-agent zabbix-trapper
		amanda kamanda amandaidx amidxtape bacula-dir bacula-fd bacula-sd xmms2 nbd munin`)
}

// IsICMPType tells whether iptables knows the name of the ICMP type.
func IsICMPType(s string) bool {
	return slices.Contains(strings.Fields(`any echo-reply destination-unreachable network-unreachable host-unreachable protocol-unreachable
		port-unreachable fragmentation-needed source-route-failed network-unknown host-unknown network-prohibited host-prohibited
		TOS-network-unreachable TOS-host-unreachable communication-prohibited host-precedence-violation precedence-cutoff source-quench
		redirect network-redirect host-redirect TOS-network-redirect TOS-host-redirect echo-request router-advertisement
		router-solicitation time-exceeded ttl-zero-during-transit ttl-zero-during-reassembly parameter-problem ip-header-bad
		required-option-missing timestamp-request timestamp-reply address-mask-request address-mask-reply`), s)
}

// IsICMPv6Type tells whether ip6tables knows the name of the ICMPv6 type.
func IsICMPv6Type(s string) bool {
	return slices.Contains(strings.Fields(`any destination-unreachable no-route communication-prohibited beyond-scope address-unreachable
		port-unreachable failed-policy reject-route packet-too-big time-exceeded ttl-zero-during-transit ttl-zero-during-reassembly
		parameter-problem bad-header unknown-header-type unknown-option echo-request echo-reply router-solicitation
		router-advertisement neighbor-solicitation neighbour-solicitation neighbor-advertisement neighbour-advertisement redirect`), s)
}
