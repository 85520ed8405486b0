// Package firewall holds firewall configurations as pve-firewall does: options, rules, IP sets, aliases and security groups, with
// its checks, its words and its digests. It filters nothing and knows no API: that is the business of who uses it.
//
// It is pure. No input makes it panic.
package firewall
