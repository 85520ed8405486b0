// Package controllers reconciles the kinds of CAPVE: each pass observes, plans, acts and reports. What to do is decided in
// pkg/plan; this package puts the parts together and knows Cluster API's customs.
package controllers
