package integration_test

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
	"github.com/capve/cluster-api-provider-proxmox/test/pveschema"
)

// schemaDir has Proxmox VE's own API schemas, where they are at hand.
const schemaDir = "../../../shared/pve-api"

// loadSchemas loads the schemas of all versions; there are none where they are not at hand.
func loadSchemas() (map[pvesim.Version]*pveschema.Schema, error) {
	schemas := map[pvesim.Version]*pveschema.Schema{}
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		schema, err := pveschema.LoadSchema(schemaDir, string(version))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil {
			schemas[version] = schema
		}
	}
	return schemas, nil
}

// fitsSchema checks, at the end of every test, every request that was sent against Proxmox VE's own schema: disturbed or not,
// what we send is well-formed.
func (b *bench) fitsSchema() {
	version := b.pve.World.Version()
	schema := b.env.schemas[version]
	if schema == nil {
		b.t.Logf("no request was checked against the API schema of Proxmox VE %s: it is not in %s", version, schemaDir)
		return
	}
	log, err := os.Open(b.requestLog)
	if os.IsNotExist(err) {
		return
	}
	b.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = log.Close() }()
	requests, err := pveschema.ReadLog(log)
	b.Expect(err).NotTo(HaveOccurred())
	for _, misfit := range schema.Misfits(requests) {
		if !slices.ContainsFunc(b.misfits, func(part string) bool { return strings.Contains(misfit, part) }) {
			b.t.Errorf("a request does not fit the API schema of Proxmox VE %s: %s", version, misfit)
		}
	}
}
