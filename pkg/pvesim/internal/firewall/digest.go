package firewall

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// Digest is the SHA-1 of a list of objects, by which pve-firewall tells that a section was changed. Keys count in their order.
func Digest(objects ...map[string]string) string {
	sum := sha1.New()
	for _, o := range objects {
		for _, key := range slices.Sorted(maps.Keys(o)) {
			_, _ = fmt.Fprintf(sum, "%s:%s\n", key, o[key])
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// RulesDigest is the digest of rules.
func RulesDigest(rules []Rule) string {
	objects := make([]map[string]string, len(rules))
	for i, r := range rules {
		objects[i] = r
	}
	return Digest(objects...)
}

// Fields are the properties of an entry that are set.
func (e Entry) Fields() map[string]string {
	out := commented(e.Comment)
	out["cidr"] = e.CIDR
	if e.NoMatch {
		out["nomatch"] = "1"
	}
	return out
}

// Fields are the properties of an alias that are set, with the version of IP that it is of.
func (a Alias) Fields() map[string]string {
	out := commented(a.Comment)
	out["name"], out["cidr"], out["ipversion"] = a.Name, a.CIDR, versionText(a.version())
	return out
}

// IPSetList are the names and comments of the IP sets, in the order of names.
func (c *Config) IPSetList() []map[string]string {
	out := []map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.IPSets)) {
		o := commented(c.IPSets[name].Comment)
		o["name"] = name
		out = append(out, o)
	}
	return out
}

// GroupList are the names and comments of the security groups, in the order of names.
func (c *Config) GroupList() []map[string]string {
	out := []map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Groups)) {
		o := commented(c.Groups[name].Comment)
		o["group"] = name
		out = append(out, o)
	}
	return out
}

// AliasList are the aliases, in the order of names.
func (c *Config) AliasList() []map[string]string {
	out := []map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Aliases)) {
		out = append(out, c.Aliases[name].Fields())
	}
	return out
}

func commented(comment string) map[string]string {
	if comment == "" {
		return map[string]string{}
	}
	return map[string]string{"comment": comment}
}
