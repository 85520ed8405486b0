// Package architecture_test holds the laws of this repository that a linter cannot check, and proves of each that a
// breach of it is found. CONTRIBUTING.md says why they are there: imports go one way, planners
// are pure, functions and files are short, names say something, and everything exported is explained.
package architecture_test
