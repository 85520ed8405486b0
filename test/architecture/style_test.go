package architecture_test

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The numbers of the house style.
const (
	maxFunctionLines    = 60
	maxFileLines        = 400
	maxParameters       = 4
	maxInterfaceMethods = 5
	medianFunctionLines = 10
	p90FunctionLines    = 35
)

// styleRule finds breaches of one rule of the house style.
type styleRule struct {
	name   string
	breach func(sources) []string
}

var styleRules = []styleRule{
	{"every package says what it is", undocumentedPackages},
	{"package names are domain nouns", shelves},
	{"functions are short", longFunctions},
	{"most functions are very short", longOnTheWhole},
	{"files are short", longFiles},
	{"many parameters are a struct", manyParameters},
	{"exported functions take no booleans", booleanParameters},
	{"interfaces are small", largeInterfaces},
	{"what is exported is explained", undocumentedNames},
	{"fields of the API are explained", undocumentedFields},
	{"packages do nothing before main", initializers},
	{"planners have no clock", clockInPlanners},
	{"switches over a sum name all its variants", partialSwitches},
}

func TestStyle(t *testing.T) {
	all := repository(t)
	for _, rule := range styleRules {
		t.Run(rule.name, func(t *testing.T) {
			for _, breach := range rule.breach(all) {
				t.Error(breach)
			}
		})
	}
}

// undocumentedPackages also counts packages of tests alone: those say what they are about.
func undocumentedPackages(all sources) []string {
	documented := map[string]bool{}
	for _, f := range all {
		folder := path.Dir(f.path)
		documented[folder] = documented[folder] || f.syntax.Doc != nil && !f.generated
	}
	var found []string
	for folder, ok := range documented {
		if !ok {
			found = append(found, folder+": no file has a package comment")
		}
	}
	slices.Sort(found)
	return found
}

// shelves are packages named after what was left over instead of what is in them.
func shelves(all sources) []string {
	banned := []string{"util", "utils", "common", "helper", "helpers", "scope", "service", "services", "misc", "base", "shared", "lib"}
	var found []string
	for _, f := range all {
		name := strings.TrimSuffix(f.syntax.Name.Name, "_test")
		if slices.Contains(banned, name) {
			found = append(found, fmt.Sprintf("%s: package %s does not say what is in it", f.at(f.syntax.Name), name))
		}
	}
	return found
}

func longFunctions(all sources) []string {
	var found []string
	for _, f := range all.handwritten() {
		for _, function := range f.functions() {
			if n := f.bodyLines(function); n > maxFunctionLines {
				found = append(found, fmt.Sprintf("%s: %s has %d lines, more than %d", f.at(function), function.Name.Name, n, maxFunctionLines))
			}
		}
	}
	return found
}

func longOnTheWhole(all sources) []string {
	var lengths []int
	for _, f := range all.handwritten() {
		for _, function := range f.functions() {
			lengths = append(lengths, f.bodyLines(function))
		}
	}
	if len(lengths) == 0 {
		return nil
	}
	slices.Sort(lengths)
	median, p90 := lengths[len(lengths)/2], lengths[len(lengths)*9/10]
	if median <= medianFunctionLines && p90 <= p90FunctionLines {
		return nil
	}
	return []string{fmt.Sprintf("of %d functions half are within %d lines and nine in ten within %d; want %d and %d",
		len(lengths), median, p90, medianFunctionLines, p90FunctionLines)}
}

func longFiles(all sources) []string {
	var found []string
	for _, f := range all.handwritten() {
		if f.lines > maxFileLines {
			found = append(found, fmt.Sprintf("%s: %d lines, more than %d", f.path, f.lines, maxFileLines))
		}
	}
	return found
}

// manyParameters does not count a context.
func manyParameters(all sources) []string {
	var found []string
	for _, f := range all.handwritten() {
		for _, function := range f.functions() {
			n := 0
			for _, p := range function.Type.Params.List {
				if !isSelector(p.Type, "context", "Context") {
					n += max(1, len(p.Names))
				}
			}
			if n > maxParameters {
				found = append(found, fmt.Sprintf("%s: %s has %d parameters: make a struct of them", f.at(function), function.Name.Name, n))
			}
		}
	}
	return found
}

// booleanParameters looks at exported functions, and at exported methods of exported types.
func booleanParameters(all sources) []string {
	var found []string
	for _, f := range all.handwritten() {
		for _, function := range f.functions() {
			if !isExported(function) {
				continue
			}
			for _, p := range function.Type.Params.List {
				if name, ok := p.Type.(*ast.Ident); ok && name.Name == "bool" {
					found = append(found, fmt.Sprintf("%s: %s takes a bool, which says nothing where it is called", f.at(p), function.Name.Name))
				}
			}
		}
	}
	return found
}

func largeInterfaces(all sources) []string {
	var found []string
	for _, f := range all.handwritten() {
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			if t, ok := node.(*ast.InterfaceType); ok && t.Methods.NumFields() > maxInterfaceMethods {
				found = append(found, fmt.Sprintf("%s: an interface of %d methods", f.at(t), t.Methods.NumFields()))
			}
			return true
		})
	}
	return found
}

func initializers(all sources) []string {
	var found []string
	for _, f := range all.handwritten() {
		for _, function := range f.functions() {
			if function.Recv == nil && function.Name.Name == "init" {
				found = append(found, f.at(function)+": an init function")
			}
		}
	}
	return found
}

func clockInPlanners(all sources) []string {
	clock := []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}
	var found []string
	for _, f := range all.under("pkg/plan").handwritten() {
		name := importedAs(f.syntax, "time")
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok && slices.Contains(clock, selector.Sel.Name) && isSelector(selector, name, selector.Sel.Name) {
				found = append(found, fmt.Sprintf("%s: time.%s: time is an input of a planner", f.at(selector), selector.Sel.Name))
			}
			return true
		})
	}
	return found
}

// importedAs returns the name that a file gives to a package of the standard library, "" if it does not import it.
func importedAs(file *ast.File, importPath string) string {
	for _, spec := range file.Imports {
		if unquoted, err := strconv.Unquote(spec.Path.Value); err != nil || unquoted != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

func isSelector(e ast.Expr, pkg, name string) bool {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	x, ok := selector.X.(*ast.Ident)
	return ok && x.Name == pkg
}

// isExported says whether a function can be called from outside its package.
func isExported(function *ast.FuncDecl) bool {
	if !function.Name.IsExported() {
		return false
	}
	return function.Recv == nil || ast.IsExported(receiverName(function.Recv.List[0].Type))
}

// receiverName returns the type name of a receiver: T of T, *T, T[K] and *T[K, V].
func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	}
	return ""
}
