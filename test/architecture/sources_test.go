package architecture_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

const repositoryRoot = "../.."

// sourceFile is one parsed Go file.
type sourceFile struct {
	path      string // slash-separated, relative to the repository
	fset      *token.FileSet
	syntax    *ast.File
	lines     int
	isTest    bool
	generated bool
}

// sources are the Go files of the repository, over all its modules.
type sources []sourceFile

// handwritten returns the files that people write and that go into a binary.
func (s sources) handwritten() sources {
	return slices.DeleteFunc(slices.Clone(s), func(f sourceFile) bool { return f.isTest || f.generated })
}

// under returns the files below any of the folders.
func (s sources) under(folders ...string) sources {
	return slices.DeleteFunc(slices.Clone(s), func(f sourceFile) bool {
		return !slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(f.path, folder+"/") })
	})
}

// at returns where node is, as compilers print it.
func (f sourceFile) at(node ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.fset.Position(node.Pos()).Line)
}

// functions returns the declared functions and methods that have a body.
func (f sourceFile) functions() []*ast.FuncDecl {
	var found []*ast.FuncDecl
	for _, declaration := range f.syntax.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && function.Body != nil {
			found = append(found, function)
		}
	}
	return found
}

// bodyLines is the number of lines between a function's braces.
func (f sourceFile) bodyLines(function *ast.FuncDecl) int {
	return max(1, f.fset.Position(function.Body.Rbrace).Line-f.fset.Position(function.Body.Lbrace).Line-1)
}

// loadSources parses all Go files below the root of fsys, but not what the go command ignores too.
func loadSources(fsys fs.FS) (sources, error) {
	var found sources
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && ignoredFolder(name):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		file, err := parseFile(fsys, name)
		if err == nil {
			found = append(found, file)
		}
		return err
	})
	return found, err
}

func ignoredFolder(name string) bool {
	base := path.Base(name)
	return name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) ||
		base == "testdata" || name == "out" || name == "bin"
}

func parseFile(fsys fs.FS, name string) (sourceFile, error) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return sourceFile{}, err
	}
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return sourceFile{}, fmt.Errorf("parse %s: %w", name, err)
	}
	return sourceFile{
		path:      name,
		fset:      fset,
		syntax:    syntax,
		lines:     strings.Count(string(text), "\n"),
		isTest:    strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(syntax),
	}, nil
}

// repository returns the sources of this repository.
func repository(t *testing.T) sources {
	t.Helper()
	all, err := loadSources(os.DirFS(repositoryRoot))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("the repository has no Go files")
	}
	return all
}
