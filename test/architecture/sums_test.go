package architecture_test

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// sum is a sealed sum type: an interface marked `//sumtype:decl` with an unexported method, and the types of its package
// that have that method.
type sum struct {
	name     string
	importAs string // import path of its package
	variants []string
}

// partialSwitches finds type switches that name some variants of a sum, but not all. The linter gochecksumtype sees only
// switches in the sum's own package. A switch that means to leave variants out says so, `// partial: why`, on its line.
func partialSwitches(all sources) []string {
	sums := all.sums()
	var found []string
	for _, f := range all.handwritten() {
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			typeSwitch, ok := node.(*ast.TypeSwitchStmt)
			if !ok || f.saysPartial(typeSwitch) {
				return true
			}
			cases := f.caseTypes(typeSwitch)
			for _, s := range sums {
				if missing := s.missing(cases); len(missing) > 0 && len(missing) < len(s.variants) {
					found = append(found, fmt.Sprintf("%s: the switch over %s leaves out %s", f.at(node), s.name, strings.Join(missing, ", ")))
				}
			}
			return true
		})
	}
	return found
}

// missing returns the variants that are not among types, which are qualified by import path.
func (s sum) missing(types []string) []string {
	return slices.DeleteFunc(slices.Clone(s.variants), func(v string) bool { return slices.Contains(types, s.importAs+"."+v) })
}

func (s sources) sums() []sum {
	var found []sum
	for _, f := range s {
		for _, declaration := range f.syntax.Decls {
			name, seal := sealedInterface(declaration)
			if seal != "" {
				found = append(found, sum{name: name, importAs: f.importPath(), variants: s.withMethod(path.Dir(f.path), seal)})
			}
		}
	}
	return found
}

// sealedInterface returns the name of an interface marked as a sum and of the method that seals it, or nothing.
func sealedInterface(declaration ast.Decl) (name, seal string) {
	group, ok := declaration.(*ast.GenDecl)
	if !ok || group.Doc == nil || len(group.Specs) != 1 {
		return "", ""
	}
	marked := slices.ContainsFunc(group.Doc.List, func(c *ast.Comment) bool { return c.Text == "//sumtype:decl" })
	spec, ok := group.Specs[0].(*ast.TypeSpec)
	if !ok || !marked {
		return "", ""
	}
	if body, ok := spec.Type.(*ast.InterfaceType); ok {
		for _, method := range body.Methods.List {
			if len(method.Names) == 1 && !method.Names[0].IsExported() {
				return spec.Name.Name, method.Names[0].Name
			}
		}
	}
	return "", ""
}

// withMethod returns the types of a folder's package that have a method.
func (s sources) withMethod(folder, method string) []string {
	var found []string
	for _, f := range s {
		if path.Dir(f.path) != folder {
			continue
		}
		for _, function := range f.functions() {
			if function.Recv != nil && function.Name.Name == method {
				found = append(found, receiverName(function.Recv.List[0].Type))
			}
		}
	}
	return found
}

// importPath is the import path of the file's package, provided that it is in the root module.
func (f sourceFile) importPath() string { return module + "/" + path.Dir(f.path) }

// caseTypes returns the types that a switch names, qualified by import path.
func (f sourceFile) caseTypes(typeSwitch *ast.TypeSwitchStmt) []string {
	var found []string
	for _, clause := range typeSwitch.Body.List {
		for _, e := range clause.(*ast.CaseClause).List {
			if star, ok := e.(*ast.StarExpr); ok {
				e = star.X
			}
			switch e := e.(type) {
			case *ast.Ident:
				found = append(found, f.importPath()+"."+e.Name)
			case *ast.SelectorExpr:
				if x, ok := e.X.(*ast.Ident); ok {
					found = append(found, f.importNamed(x.Name)+"."+e.Sel.Name)
				}
			}
		}
	}
	return found
}

// importNamed returns the path of the import that the file calls name.
func (f sourceFile) importNamed(name string) string {
	for _, spec := range f.syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err == nil && (spec.Name == nil && path.Base(imported) == name || spec.Name != nil && spec.Name.Name == name) {
			return imported
		}
	}
	return ""
}

// saysPartial says whether a comment on the line of the switch begins with "partial:".
func (f sourceFile) saysPartial(typeSwitch *ast.TypeSwitchStmt) bool {
	line := f.fset.Position(typeSwitch.Pos()).Line
	for _, group := range f.syntax.Comments {
		if f.fset.Position(group.Pos()).Line == line && strings.HasPrefix(group.Text(), "partial: ") {
			return true
		}
	}
	return false
}

// TestPartialSwitchesAcrossPackages covers what gochecksumtype does not: the sum is in another package.
func TestPartialSwitchesAcrossPackages(t *testing.T) {
	const declaration = "package plan\n\n// Action is one.\n//\n//sumtype:decl\ntype Action interface{ isAction() }\n" +
		"type Go struct{}\ntype Stop struct{}\nfunc (Go) isAction() {}\nfunc (*Stop) isAction() {}\n"
	const begin = "package act\nimport wanted \"" + module + "/pkg/plan\"\nfunc f(a wanted.Action) {\n\tswitch a.(type) {"
	tests := []struct {
		name, text string
		breaches   int
	}{
		{name: "all", text: begin + "\n\tcase wanted.Go:\n\tcase *wanted.Stop:\n\t}\n}"},
		{name: "all in one case", text: begin + "\n\tcase wanted.Go, *wanted.Stop:\n\t}\n}"},
		{name: "one", text: begin + "\n\tcase wanted.Go:\n\t}\n}", breaches: 1},
		{name: "one and a default", text: begin + "\n\tcase wanted.Go:\n\tdefault:\n\t}\n}", breaches: 1},
		{name: "one, and says so", text: begin + " // partial: somebody else stops\n\tcase wanted.Go:\n\t}\n}"},
		{name: "other types", text: begin + "\n\tcase other.Go:\n\t}\n}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			all, err := loadSources(fstest.MapFS{"pkg/plan/action.go": {Data: []byte(declaration)}, "pkg/act/act.go": {Data: []byte(tt.text)}})
			if err != nil {
				t.Fatal(err)
			}
			if got := partialSwitches(all); len(got) != tt.breaches {
				t.Errorf("want %d breaches, got %q", tt.breaches, got)
			}
		})
	}
}
