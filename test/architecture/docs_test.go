package architecture_test

import (
	"fmt"
	"go/ast"
	"go/token"
)

// undocumentedNames finds exported functions, methods, types, constants and variables without a doc comment. In a group
// the comment of the group counts for constants and variables, since it explains them together.
func undocumentedNames(all sources) []string {
	var found []string
	for _, f := range all.under("api", "pkg").handwritten() {
		for _, declaration := range f.syntax.Decls {
			for _, name := range undocumentedIn(declaration) {
				found = append(found, fmt.Sprintf("%s: %s has no doc comment", f.at(name), name.Name))
			}
		}
	}
	return found
}

func undocumentedIn(declaration ast.Decl) []*ast.Ident {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if isExported(d) && d.Doc == nil {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		if d.Doc != nil && (d.Tok != token.TYPE || !d.Lparen.IsValid()) {
			return nil
		}
		var found []*ast.Ident
		for _, spec := range d.Specs {
			found = append(found, undocumentedInSpec(spec)...)
		}
		return found
	}
	return nil
}

func undocumentedInSpec(spec ast.Spec) []*ast.Ident {
	var names []*ast.Ident
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Doc == nil {
			names = []*ast.Ident{s.Name}
		}
	case *ast.ValueSpec:
		if s.Doc == nil && s.Comment == nil {
			names = s.Names
		}
	}
	var exported []*ast.Ident
	for _, name := range names {
		if name.IsExported() {
			exported = append(exported, name)
		}
	}
	return exported
}

// undocumentedFields finds fields of API types without a comment: `kubectl explain` shows it.
func undocumentedFields(all sources) []string {
	var found []string
	for _, f := range all.under("api").handwritten() {
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			structure, ok := node.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range structure.Fields.List {
				for _, name := range field.Names {
					if name.IsExported() && field.Doc == nil {
						found = append(found, fmt.Sprintf("%s: field %s has no comment", f.at(field), name.Name))
					}
				}
			}
			return true
		})
	}
	return found
}
