package pvesim

import (
	"regexp"
	"strings"
)

// normalPath writes an access control path as PVE::AccessControl does: one slash between its parts and none at the end. It returns ""
// for what is no path.
func normalPath(path string) string {
	if path == "" {
		return ""
	}
	parts := split(path)
	for _, part := range parts {
		if strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" {
			return ""
		}
	}
	return "/" + strings.Join(parts, "/")
}

// validACLPath tells whether there can be ACL entries on a normal path (PVE::AccessControl::check_path).
func validACLPath(v Version, path string) bool {
	const id, word = `[[:alnum:]._-]+`, `[[:alnum:]_-]+`
	patterns := []string{
		`/`, `/access`, `/access/groups(/` + id + `)?`, `/access/realm(/` + id + `)?`, `/nodes(/` + id + `)?`,
		`/pool(/[A-Za-z0-9._-]+){0,3}`, `/sdn`, `/sdn/controllers(/` + word + `)?`, `/sdn/dns(/[[:alnum:]]+)?`, `/sdn/ipams(/[[:alnum:]]+)?`,
		`/sdn/zones(/` + id + `(/` + id + `(/[1-9][0-9]{0,3})?)?)?`, `/storage(/` + id + `)?`, `/vms(/[1-9][0-9]{2,})?`,
		`/mapping(/` + id + `(/` + id + `)?)?`,
	}
	if v != V84 {
		patterns = append(patterns, `/sdn/fabrics(/`+word+`)?`)
	}
	valid, err := regexp.MatchString(`^(`+strings.Join(patterns, "|")+`)$`, path)
	return err == nil && valid
}
