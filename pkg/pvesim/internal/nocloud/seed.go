package nocloud

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// The files of a seed.
const (
	metaDataFile      = "meta-data"
	userDataFile      = "user-data"
	networkConfigFile = "network-config"
)

// Seed is a NoCloud seed, understood as cloud-init would.
type Seed struct {
	MetaData map[string]string
	// UserData with its placeholders filled in.
	UserData string
	// NetworkConfig as it was written; empty if the seed has none.
	NetworkConfig string
	network       networkConfig
}

// New reads the files of a seed, by their names. Both meta-data and user-data must be there, though user-data may be empty.
func New(files map[string]string) (*Seed, error) {
	meta, ok := files[metaDataFile]
	if !ok {
		return nil, errors.New("no file meta-data")
	}
	user, ok := files[userDataFile]
	if !ok {
		return nil, errors.New("no file user-data")
	}
	s := &Seed{NetworkConfig: files[networkConfigFile]}
	var raw map[string]any
	if err := yaml.Unmarshal([]byte(meta), &raw); err != nil {
		return nil, fmt.Errorf("meta-data is no YAML: %w", err)
	}
	s.MetaData = make(map[string]string, len(raw))
	for key, value := range raw {
		s.MetaData[key] = fmt.Sprint(value)
	}
	if s.MetaData["instance-id"] == "" {
		return nil, errors.New("meta-data has no instance-id")
	}
	s.UserData = s.render(user)
	return s, s.readNetwork()
}

const jinjaHeader = "## template: jinja"

// render fills in the placeholders of user-data that asks for it, as cloud-init does with Jinja: {{ ds.meta_data.x }} and
// {{ v1.x }}. Keys may be written with _ for -. What is unknown becomes cloud-init's CI_MISSING_JINJA_VAR.
func (s *Seed) render(text string) string {
	header, rest, _ := strings.Cut(text, "\n")
	if !strings.EqualFold(strings.TrimSpace(header), jinjaHeader) {
		return text
	}
	placeholder := regexp.MustCompile(`\{\{-?\s*(ds\.meta_data|v1)(?:\.(\w+)|\[["']([^"']+)["']\])\s*-?\}\}`)
	return placeholder.ReplaceAllStringFunc(rest, func(match string) string {
		m := placeholder.FindStringSubmatch(match)
		return s.variable(m[1], m[2]+m[3])
	})
}

func (s *Seed) variable(scope, name string) string {
	if scope == "v1" {
		switch name {
		case "local_hostname":
			name = "local-hostname"
		case "instance_id":
			name = "instance-id"
		}
	}
	for _, key := range []string{name, strings.ReplaceAll(name, "_", "-"), strings.ReplaceAll(name, "-", "_")} {
		if value, ok := s.MetaData[key]; ok {
			return value
		}
	}
	return "CI_MISSING_JINJA_VAR/" + name
}

// Hostname is what the guest calls itself; empty if the seed does not say.
func (s *Seed) Hostname() string {
	if name := s.MetaData["local-hostname"]; name != "" {
		return name
	}
	return s.MetaData["hostname"]
}

// InstanceID is that of the meta-data. It is never empty.
func (s *Seed) InstanceID() string { return s.MetaData["instance-id"] }
