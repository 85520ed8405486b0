// Package manifests_test checks what a release ships besides the manager: the components that clusterctl installs, its
// metadata, and the cluster templates.
package manifests_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const repositoryRoot = "../.."

// documents are the objects of a YAML stream.
type documents []unstructured.Unstructured

func (d documents) ofKind(kind string) documents {
	var found documents
	for _, object := range d {
		if object.GetKind() == kind {
			found = append(found, object)
		}
	}
	return found
}

// only returns the object of a kind of which there must be one.
func (d documents) only(t *testing.T, kind string) unstructured.Unstructured {
	t.Helper()
	found := d.ofKind(kind)
	if len(found) != 1 {
		t.Fatalf("want one %s, got %d", kind, len(found))
	}
	return found[0]
}

func (d documents) has(kind, name string) bool {
	for _, object := range d.ofKind(kind) {
		if object.GetName() == name {
			return true
		}
	}
	return false
}

func parse(t *testing.T, text []byte) documents {
	t.Helper()
	var found documents
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var object unstructured.Unstructured
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("parse document %d: %v", len(found)+1, err)
		}
		if len(object.Object) > 0 {
			found = append(found, object)
		}
	}
}

func read(t *testing.T, elements ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{repositoryRoot}, elements...)...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// run runs a command at the root of the repository, as make does, and returns what it prints.
func run(t *testing.T, name string, arguments ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir = repositoryRoot
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, complaints.Bytes())
	}
	return out
}

// variable is ${NAME} or ${NAME:=default}, the forms of clusterctl's variables that our files use.
var variable = regexp.MustCompile(`\$\{([A-Z][A-Z0-9_]*)(:=([^}]*))?\}`)

// substitute fills in variables as clusterctl does. It returns an error that names those without value and default.
func substitute(text []byte, values map[string]string) ([]byte, error) {
	var missing []string
	filled := variable.ReplaceAllFunc(text, func(match []byte) []byte {
		groups := variable.FindSubmatch(match)
		name := string(groups[1])
		if value, ok := values[name]; ok {
			return []byte(value)
		}
		if groups[2] == nil {
			missing = append(missing, name)
		}
		return groups[3]
	})
	if len(missing) > 0 {
		return nil, fmt.Errorf("no value for %s", strings.Join(missing, ", "))
	}
	if rest := bytes.Index(filled, []byte("${")); rest >= 0 {
		return nil, fmt.Errorf("not a variable: %.40q", filled[rest:])
	}
	return filled, nil
}

func TestSubstitute(t *testing.T) {
	tests := []struct {
		text, want string
		fails      bool
	}{
		{text: "${A}", want: "1"},
		{text: "${B:=x}/${A:=y}", want: "x/1"},
		{text: "${B:=}", want: ""},
		{text: "${B}", fails: true},
		{text: "${a}", fails: true},
	}
	for _, tt := range tests {
		got, err := substitute([]byte(tt.text), map[string]string{"A": "1"})
		if string(got) != tt.want || (err != nil) != tt.fails {
			t.Errorf("substitute(%q) = %q, %v; want %q, error %t", tt.text, got, err, tt.want, tt.fails)
		}
	}
}
