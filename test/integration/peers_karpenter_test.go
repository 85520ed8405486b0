package integration_test

// karpenterProxmox is Part B.
func karpenterProxmox() peer {
	return peer{
		name:    "karpenter-provider-proxmox",
		studied: "[karpenter-provider-proxmox](https://github.com/sergelogvinov/karpenter-provider-proxmox) v0.12.0, July 2026.",
		defects: append(append(karpenterLife(), karpenterPlaces()...), karpenterRest()...),
	}
}

// karpenterLife are the defects of a machine's life and of its addresses.
func karpenterLife() []defect {
	return []defect{
		{
			name: "refused clone stops and destroys the VM that has the ID", run: refusedClone,
			there: "after any error of a clone the VM at that VMID is stopped and destroyed, also when it is another's that runs",
			here:  "what does not carry our marker is not touched",
		},
		{
			name: "VM without a Node is never found", run: neverJoined,
			there: "VMs are known by their Nodes: one that crashed on its way, or never joined, is leaked",
			here:  "a machine knows its VM from before it is made",
		},
		{
			name: "restart makes a second VM", run: restartAfterLostReply,
			there: "a request that was lost at a restart is sent again under another VMID",
			here:  "the VM of the reservation is looked for first",
		},
		{
			name: "removed VM still exists", by: []string{"test/integration TestVMThatWasDeletedIsNotMadeAgain"},
			there: "a VM that was removed by somebody exists until its Node is deleted",
			here:  "noticed by the next poll of the inventory",
		},
		{
			name: "stop races destroy", run: startedBeforeDestroy,
			there: "stop and destroy overtake one another, and VMs are leaked (#188)",
			here:  "a VM that runs again is stopped again, then destroyed",
		},
		{
			name: "resize is not awaited", by: []string{"pkg/plan TestWhileTheVMIsMade/the growing is waited for"},
			there: "the tasks of resizing and configuring are not waited for",
			here:  "each step waits for the task before it",
		},
		{
			name: "token stays on the storage", run: deletedOnItsWay,
			there: "a machine that fails on its way leaves the ISO with its join token on the storage",
			here:  "the seed goes with the machine, whenever that is deleted",
		},
		{
			name: "failed launch keeps its address", run: failedLaunch,
			there: "a launch that fails does not give its address back",
			here:  "claims go with their machine",
		},
		{
			name: "network and broadcast addresses are given", by: []string{"test/integration TestAddressesThatCannotBeAMachines"},
			there: "a pool hands out its broadcast address and its gateway",
			here:  "such an address is refused, whatever pool it is from",
		},
		{
			name: "addresses are given twice", by: []string{
				"test/integration TestContractAddressClaims", "test/integration TestContractAddressesAreHeldAgain",
				"test/integration TestContractAddressIsNotReleasedBeforeItsVM",
			},
			there: "addresses are in memory, rebuilt from Nodes: those of VMs that have not joined are given again",
			here:  "each is a claim in Kubernetes, held until the VM is gone",
		},
		{
			name: "host address is dropped", by: []string{
				"pkg/plan/network TestTheGuestIsToldItsNetwork/one IPv4 address", "pkg/plan/network TestAnAddressIsRefused",
			},
			there: "a fixed host address is dropped, and the address of the host's bridge becomes the gateway",
			here:  "the guest is told what its claims were given",
		},
		{
			name: "exhausted pool is not reported", by: []string{"test/integration TestBadMachines/empty address pool"},
			there: "a pool that is used up starts again from its first address",
			here:  "the machine waits, and says for which pool",
		},
		{
			name: "expired tokens are not cleaned up", by: []string{"test/integration TestMachineLivesAndLeavesNothingBehind"},
			there: "nothing calls the code that deletes expired tokens",
			here:  "tokens are the bootstrap provider's; our copy goes when the Node is there",
		},
	}
}

// karpenterPlaces are the defects of hosts, capacity, templates and VMIDs.
func karpenterPlaces() []defect {
	return []defect{
		{
			name: "concurrent launches draw one VMID", by: []string{"test/integration TestManyMachinesAtOnce"},
			there: "ten launches at once all got VMID 20000",
			here:  "reservations go through one ledger",
		},
		{
			name: "excluded host is chosen", run: onlyAllowedHosts,
			there: "«zone not in pve1» is read as «in pve1»",
			here:  "filters are hard: no host is better than a wrong one",
		},
		{
			name: "burst lands on one host", by: []string{"test/integration TestManyMachinesAtOnce"},
			there: "load is sampled once a minute: machines of that minute land on one host",
			here:  "reservations count at once",
		},
		{
			name: "VM in the making is not counted", run: midCloneCounts,
			there: "a VM that is being cloned loses its reservation when the inventory is read again",
			here:  "reservations count until the VM does",
		},
		{
			name: "stopped VM is not counted", run: stoppedCounts,
			there: "only VMs that run are counted",
			here:  "all guests count with what they may use",
		},
		{
			name: "container is not counted", run: containerCounts,
			there: "containers are not counted",
			here:  "all guests count with what they may use",
		},
		{
			name: "overcommitted host looks free", by: []string{
				"pkg/plan/placement TestAHostIsRefusedWithTheFirstReasonThereIs/its guests may use more memory than it has",
			},
			there: "a guest that does not fit is left out of the sum (#195)",
			here:  "it is counted, and the host is full",
		},
		{
			name: "full storage is tried for ever", by: []string{"test/integration TestBadMachines/storage that is full"},
			there: "free space of storages is not looked at, and the failure is not shown",
			here:  "the condition names the failed task; the clone is tried again with growing pauses",
		},
		{
			name: "shared template lands on one host", run: sharedTemplate,
			there: "clones of a template on shared storage all land on the template's host",
			here:  "they go to any host",
		},
		{
			name: "last template vanishes", run: lastTemplate,
			there: "when the last template of a region is removed the cache still has it",
			here:  "the machine waits, and says that there is none",
		},
		{
			name: "template on two storages is left out", run: twoStorages,
			there: "a template whose disks are on two storages is left out without a reason",
			here:  "it is cloned",
		},
		{
			name: "storage is not optional", by: []string{"test/integration TestMachineLivesAndLeavesNothingBehind"},
			there: "without a storage, which is documented as optional, nothing gets ready",
			here:  "without one the clone goes where the template is",
		},
		{
			name: "unknown CPU is never offered", lacks: numa,
			there: "hosts whose CPU model is not known are never used, also without pinning",
		},
		{
			name: "topology is guessed", lacks: numa,
			there: "the NUMA topology is guessed from the name of the CPU",
		},
		{
			name: "memory of two nodes", lacks: numa,
			there: "a VM over two NUMA nodes asks for its full memory on each, and does not start",
		},
		{
			name: "larger than a NUMA node", lacks: numa,
			there: "a VM that is larger than each NUMA node fits nowhere",
		},
		{
			name: "affinity needs root", lacks: numa,
			there: "pinning needs the password of root@pam",
		},
		{
			name: "shortage is a plain error", lacks: instances,
			there: "no host is an error and not the one that has Karpenter plan again",
		},
		{
			name: "zone without a template is offered", lacks: instances,
			there: "offerings are of every zone, also of those that have no template",
		},
		{
			name: "overhead of memory", lacks: instances,
			there: "MiB are compared with GiB, and the overhead that one sets is not read",
		},
	}
}

// karpenterRest are the defects of templates, rights and texts.
func karpenterRest() []defect {
	return []defect{
		{
			name: "rights on everything", by: []string{"test/integration TestDocumentedRightsAreEnough"},
			there: "all privileges are asked for at /",
			here:  "the rights of docs/permissions.md are enough, and tested",
		},
		{
			name: "role lacks what is needed", run: roleIsEnough,
			there: "the manager may list Secrets and not get them: launches fail",
			here:  "a machine lives its life with the manager's own role",
		},
		{
			name: "options that nothing reads", by: []string{"test/manifests TestManagerTakesItsArguments"},
			there: "values of the chart and documented options that nothing reads, or that are refused",
			here:  "the manager itself parses the arguments that it is deployed with",
		},
		{
			name: "shared variables are written", by: []string{
				"test/architecture TestImportLawsCatch", "pkg/plan/network TestNothingThatAnIPAMProviderSaysBringsThePlannerDown",
			},
			there: "planning an address writes into a variable of Go's own net package, launches into a map that they share",
			here:  "planners are pure; tests run with the race detector",
		},
		{
			name: "drift of what changes nothing", lacks: rollout,
			there: "a changed balance of zones rolls all nodes; changed user data, CPU types and devices roll none",
		},
		{
			name: "stale image is imported", lacks: images,
			there: "a new checksum under an old URL imports the old file again",
		},
		{
			name: "old templates go first", lacks: images,
			there: "a new URL deletes the old templates before the new ones are there",
		},
		{
			name: "failure of one zone", lacks: images,
			there: "a template that cannot be made in one zone is only logged",
		},
		{
			name: "image without a name", lacks: images,
			there: "an image without a name, which is optional, panics",
		},
		{
			name: "compressed images", lacks: images,
			there: "images are not decompressed (#210)",
		},
		{
			name: "rules are deleted by position", by: []string{
				"test/integration TestFirewallChangesInPlace", "pkg/plan/firewall TestEditsReachWhatIsWantedAndLeaveTheRestAlone",
			},
			there: "two rules that are deleted by position while the list gets shorter hit a third one",
			here:  "one rule at a time, with the digest of the list; rules of others stay as they are",
		},
		{
			name: "first group does nothing", by: []string{"test/integration TestFirewallRefusesWhatCannotBe"},
			there: "the first security group of a VM that has none does not turn its firewall on",
			here:  "a spec with security groups has to say whether the firewall is on",
		},
		{
			name: "memory of the display", by: []string{"pkg/plan/vmconfig TestEveryFieldBothWays"},
			there: "the memory of the display is an address in memory; CPU flags are joined by the wrong sign; the agent's type is ignored",
			here:  "each field is read back from the config that is written of it",
		},
		{
			name: "functions that do not exist", lacks: userTemplate,
			there: "documented functions and options do not exist; values are not part of drift",
		},
	}
}
