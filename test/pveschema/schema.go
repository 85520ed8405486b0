// Package pveschema checks requests against Proxmox VE's own API schema: the method and path exist, every parameter is
// defined, required ones are there, and each value has the type, range, pattern and format that PVE demands. It is for
// tests of what we send; feed it the lines of a request log or what a fake server received.
//
// What PVE checks in code and not by schema is not seen here.
package pveschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Schema is the API of one version of Proxmox VE.
type Schema struct {
	root *segment
}

// segment is a piece of a path and what lies below it.
type segment struct {
	// name is the parameter's name if the piece is a {parameter}.
	name     string
	literals map[string]*segment
	param    *segment
	methods  map[string]method
}

// method is one operation.
type method struct {
	Parameters struct {
		Additional any                 `json:"additionalProperties"`
		Properties map[string]property `json:"properties"`
	} `json:"parameters"`
}

// treeNode is an entry of the schema's file.
type treeNode struct {
	Path     string            `json:"path"`
	Children []treeNode        `json:"children"`
	Info     map[string]method `json:"info"`
}

// LoadSchema reads dir/version.json, for example 9.2.json. A file that is not there is an fs.ErrNotExist.
func LoadSchema(dir, version string) (*Schema, error) {
	data, err := os.ReadFile(filepath.Join(dir, version+".json"))
	if err != nil {
		return nil, fmt.Errorf("load schema of Proxmox VE %s: %w", version, err)
	}
	return parse(data)
}

func parse(data []byte) (*Schema, error) {
	var tree []treeNode
	if err := json.Unmarshal(data, &tree); err != nil {
		return nil, fmt.Errorf("parse schema: %w", err)
	}
	s := &Schema{root: newSegment("")}
	for _, node := range tree {
		s.add(node)
	}
	return s, nil
}

func newSegment(name string) *segment {
	return &segment{name: name, literals: map[string]*segment{}, methods: map[string]method{}}
}

func (s *Schema) add(node treeNode) {
	at := s.root
	for _, piece := range pieces(node.Path) {
		at = at.child(piece)
	}
	maps.Copy(at.methods, node.Info)
	for _, child := range node.Children {
		s.add(child)
	}
}

// child returns the segment of a piece of a path template.
func (s *segment) child(piece string) *segment {
	name, isParam := strings.CutPrefix(strings.TrimSuffix(piece, "}"), "{")
	if isParam {
		if s.param == nil {
			s.param = newSegment(name)
		}
		return s.param
	}
	if s.literals[piece] == nil {
		s.literals[piece] = newSegment("")
	}
	return s.literals[piece]
}

func pieces(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// Validate checks a request. The path is without /api2/json and may be escaped; params are the query or form, an upload's
// with the file's name as `filename`. A value of *** stands for a secret and fits everywhere. The error lists all that is
// wrong.
func (s *Schema) Validate(httpMethod, path string, params map[string]string) error {
	all := map[string]string{}
	at := s.root.find(pieces(path), all)
	if at == nil {
		return fmt.Errorf("%s %s: no such path", httpMethod, path)
	}
	operation, ok := at.methods[httpMethod]
	if !ok {
		return fmt.Errorf("%s %s: no such method, only %v", httpMethod, path, slices.Sorted(maps.Keys(at.methods)))
	}
	maps.Copy(all, params)
	if err := operation.check(all); err != nil {
		return fmt.Errorf("%s %s: %w", httpMethod, path, err)
	}
	return nil
}

// find walks down and notes the path's parameters. A parameter at the end takes all that is left, as volume names need.
func (s *segment) find(path []string, params map[string]string) *segment {
	if len(path) == 0 {
		return s
	}
	if next := s.literals[path[0]]; next != nil {
		if found := next.find(path[1:], params); found != nil {
			return found
		}
	}
	if s.param == nil {
		return nil
	}
	value, rest := path[0], path[1:]
	if len(s.param.literals) == 0 && s.param.param == nil {
		value, rest = strings.Join(path, "/"), nil
	}
	if plain, err := url.PathUnescape(value); err == nil {
		value = plain
	}
	params[s.param.name] = value
	return s.param.find(rest, params)
}

// check looks at all parameters, those of the path among them.
func (m method) check(params map[string]string) error {
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(params)) {
		definition, ok := m.property(name)
		switch {
		case !ok && fmt.Sprint(m.Parameters.Additional) == "0":
			wrong = append(wrong, fmt.Errorf("%s: property is not defined in schema", name))
		case !ok || params[name] == masked:
		default:
			wrong = append(wrong, named(name, definition.check(params[name])), named(name, definition.Requires.check(params)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Parameters.Properties)) {
		_, given := params[name]
		if !given && !bool(m.Parameters.Properties[name].Optional) && !strings.HasSuffix(name, "[n]") {
			wrong = append(wrong, fmt.Errorf("%s: property is missing and it is not optional", name))
		}
	}
	return errors.Join(wrong...)
}

// masked is what request logs show of a secret.
const masked = "***"

func named(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}
