package schema

import "fmt"

const realmName = `[A-Za-z][A-Za-z0-9._-]+`

// checkAccess checks the formats of PVE::AccessControl; other formats take every value.
func checkAccess(format, value string) string {
	switch format {
	case "pve-userid":
		return checkUser(value)
	case "pve-groupid":
		return unless(matches(`[A-Za-z0-9._-]+`, value), fmt.Sprintf("value '%s' does not look like a valid group name", value))
	case "pve-roleid":
		return unless(matches(`[A-Za-z0-9._-]+`, value), fmt.Sprintf("value '%s' does not look like a valid role name", value))
	case "pve-realm":
		return unless(matches(realmName, value), "value does not look like a valid realm")
	case "pve-tokenid":
		return unless(matches(`[^\s:/]+@`+realmName+`!`+realmName, value), fmt.Sprintf("value '%s' does not look like a valid token ID", value))
	case "email":
		return unless(matches(`[\w+~-]+(\.[\w+~-]+)*@[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)*`, value), "value does not look like a valid email address")
	}
	return ""
}

func checkUser(id string) string {
	switch n := len([]rune(id)); {
	case n < 3:
		return fmt.Sprintf("user name '%s' is too short", id)
	case n > 64:
		return fmt.Sprintf("user name '%s' is too long (%d > 64)", id, n)
	}
	return unless(matches(`[^\s:/]+@`+realmName, id), fmt.Sprintf("value '%s' does not look like a valid user name", id))
}
