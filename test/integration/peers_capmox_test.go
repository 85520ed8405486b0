package integration_test

// capmox is Part A.
func capmox() peer {
	return peer{
		name:    "CAPMOX",
		studied: "[cluster-api-provider-proxmox](https://github.com/ionos-cloud/cluster-api-provider-proxmox) of ionos-cloud at 38e3ded, August 2026.",
		defects: append(append(capmoxLife(), capmoxPlaces()...), capmoxRest()...),
	}
}

// capmoxLife are the defects of a machine's life.
func capmoxLife() []defect {
	return []defect{
		{
			name: "config already equal stays cloning", run: configAlreadyEqual,
			there: "a clone whose config is already as asked skips all further steps: Ready while its VM is stopped (#848)",
			here:  "each step is planned from what is seen; Ready needs a VM that runs",
		},
		{
			name: "one clone error is for good", run: oneCloneError,
			there: "after one refused clone request the retry leaves the machine Ready, its VM unconfigured and stopped",
			here:  "the clone is asked for again, and all steps follow",
		},
		{
			name: "one start error is for good", run: oneStartError,
			there: "after one failed start the machine is Ready and its VM stopped",
			here:  "the VM is started again until it runs",
		},
		{
			name: "failed clone task keeps a VMID without a VM", run: failedCloneTask,
			there: "a clone task that fails, for example on a storage lock, is never repeated: «unable to find VM» for ever (#389)",
			here:  "the template is cloned again, to the same VMID, after a pause",
		},
		{
			name: "failed task is an invalid state", run: failedTasks,
			there: "any other failed task leaves «invalid state» for ever",
			here:  "every step whose task fails is tried again",
		},
		{
			name: "upload failure is ignored", run: failedUpload,
			there: "the task that uploads the seed is not looked at: the VM boots without its bootstrap data",
			here:  "the VM is made once the seed is known to be there",
		},
		{
			name: "shortage is terminal", by: []string{
				"test/integration TestCapacityThatIsFreedIsUsed", "test/integration TestBadMachines/no template of that name",
			},
			there: "too little memory, or a missing template, is latched as a terminal failure (#864)",
			here:  "a shortage is a condition that heals by itself",
		},
		{
			name: "used up VMID range is terminal", run: vmidRangeUsedUp,
			there: "a used up VMID range is latched as a terminal failure",
			here:  "the machine waits, and takes the first VMID that is freed",
		},
		{
			name: "read error of bootstrap data is for good", by: []string{"test/integration TestBadMachines/no bootstrap Secret"},
			there: "an error when the bootstrap Secret is read has the same end as a refused clone",
			here:  "the Secret is waited for",
		},
		{
			name: "removed VM goes unnoticed", by: []string{"test/integration TestVMThatWasDeletedIsNotMadeAgain"},
			there: "a VM that was removed by somebody is an error in the log; the machine stays Ready",
			here:  "not Ready, VirtualMachineGone, and a MachineHealthCheck can replace it",
		},
		{
			name: "migrated VM is leaked", by: []string{"test/integration TestVMThatIsMigratedIsFoundAgain"},
			there: "deletion takes «does not exist» on the node that a VM was migrated from for its end: the VM stays for ever",
			here:  "gone is what no node of the Proxmox VE cluster has",
		},
		{
			name: "foreign VM at the VMID is destroyed", by: []string{"test/integration TestForeignVMAtTheVMIDSurvivesDeletion"},
			there: "deletion destroys whatever has the VMID",
			here:  "identity is read once more right before a destroy",
		},
		{
			name: "rejected patch makes many VMs", run: rejectedPatch,
			there: "VMID and task are written after the clone: when that patch is rejected, each retry makes another VM (#733)",
			here:  "VMID and identity are in the spec before the first request; status may get lost",
		},
		{
			name: "destroy is not awaited", run: destroyTaskFails,
			there: "the task that destroys a VM is not tracked; what is left is taken over by the next machine (#742)",
			here:  "the finalizer goes when the VM is seen to be gone",
		},
		{
			name: "stop is not awaited", by: []string{"pkg/plan TestAMachineEndsInThisOrder", "test/integration TestMachineLivesAndLeavesNothingBehind"},
			there: "a running VM is destroyed before its stop has ended, which Proxmox VE refuses",
			here:  "stop, seen stopped, destroy, seen gone",
		},
		{
			name: "error of the cluster is swallowed", by: []string{
				"test/integration TestMachineWithoutItsClusterIsDeleted", "test/integration TestContractDeletionIsNotGated",
			},
			there: "a deletion that cannot read its ProxmoxCluster ends without an error and without another try",
			here:  "errors are returned; without a cluster the machine is released",
		},
		{
			name: "reason is the state machine", by: []string{
				"test/integration TestContractStatusCanBeRestored", "pkg/plan TestAMachineConvergesToOneVMWhateverHappens",
			},
			there: "the reason of a condition is the state; it is lost with the status (#758)",
			here:  "conditions are written and never read; a wiped status changes nothing",
		},
		{
			name: "manager dies after a request", by: []string{
				"test/integration TestManagerRestartsInTheMiddle", "test/integration TestFaultsOnTheWay/reply dropped",
			},
			there: "a VM that was asked for right before a crash is orphaned and made again",
			here:  "the VMID and the marker in its notes tell whose it is",
		},
	}
}

// capmoxPlaces are the defects of VMIDs, hosts and templates.
func capmoxPlaces() []defect {
	return []defect{
		{
			name: "two clusters draw one VMID", run: twoManagers,
			there: "the next free VMID is asked for and not reserved: two clusters take the same one (#842)",
			here:  "a clone that is refused as taken moves on to the next VMID, and touches nothing",
		},
		{
			name: "VMID range is probed one by one", run: fullVMIDRange,
			there: "each taken VMID of a range costs two requests",
			here:  "the inventory tells; one request confirms",
		},
		{
			name: "one offline host fails every pick", run: offlineHost,
			there: "one host that is down keeps every machine from being placed",
			here:  "it is passed over, with that reason",
		},
		{
			name: "memory alone counts", by: []string{
				"pkg/plan/placement TestAHostIsRefusedWithTheFirstReasonThereIs/it has too few CPUs",
				"pkg/plan/placement TestAHostIsRefusedWithTheFirstReasonThereIs/it lacks the storage for the disks",
			},
			there: "hosts are chosen by memory alone",
			here:  "zone, CPUs, memory, template and storages are filters",
		},
		{
			name: "unset memory is zero", by: []string{"test/integration TestDefaults", "test/integration TestProxmoxMachineRefusesWhatCannotBe/15 MiB"},
			there: "a machine without a size of memory asks for none, and fits everywhere",
			here:  "without one it is 4 GiB",
		},
		{
			name: "edge of memory", by: []string{
				"pkg/plan/placement TestTheHostThatIsChosen/may be filled to the last byte",
				"pkg/plan/placement TestAHostIsRefusedWithTheFirstReasonThereIs/it is one byte short of memory",
			},
			there: "filter and choice disagree about a host that fits exactly",
			here:  "a host may be filled to the last byte",
		},
		{
			name: "order decides ties", by: []string{"pkg/plan/placement TestTheOrderOfTheHostsDoesNotMatter"},
			there: "an unstable sort decides between equal hosts",
			here:  "the choice does not depend on the order of the hosts",
		},
		{
			name: "other clusters do not count", run: otherClusters,
			there: "machines of other clusters are not spread or counted",
			here:  "all guests of a host count, and so do all reservations",
		},
		{
			name: "better template is one too many", by: []string{
				"test/integration TestBadMachines/two templates of one name", "test/integration TestBadMachines/no template with those tags",
			},
			there: "the best match of template tags is reported as two matches",
			here:  "all tags must match; two matches on a node are named",
		},
		{
			name: "tags are sorted in place", run: tagsStay,
			there: "looking for a template changes the tags of the spec in memory",
			here:  "the spec stays as it was written",
		},
		{
			name: "second zone panics", by: []string{"pkg/plan TestTheFailureDomainsOfACluster", "test/integration TestAClusterSpansTwoProxmoxVEClusters"},
			there: "a second zone in the status panics",
			here:  "zones are made anew from the spec on each pass",
		},
		{
			name: "settings of zones are not read", lacks: zoneNetwork,
			there: "DNS servers of a zone, and the zone of a machine's place, are never read or written",
		},
		{
			name: "every machine is written into the cluster", run: clusterStaysAsItIs,
			there: "each machine rewrites one list in the cluster's status, which wakes the cluster's controller",
			here:  "machines do not write their cluster",
		},
	}
}

// capmoxRest are the defects of cost, network, webhooks and credentials.
func capmoxRest() []defect {
	return []defect{
		{
			name: "requests without end", by: []string{"test/integration TestRequestBudget", "test/integration TestContractSteadyStateCostsNothing"},
			there: "70 to 230 requests for one VM, a login on every pass, no cache",
			here:  "ten for one machine to Ready, one an hour at rest",
		},
		{
			name: "one worker waits for all", by: []string{"test/integration TestManyMachinesAtOnce", "pkg/pve TestTrackerAsksOnceForAll"},
			there: "one worker that sleeps on tasks and agents makes all machines wait",
			here:  "no worker waits for a task",
		},
		{
			name: "no timeout and no limit", by: []string{
				"pkg/pve TestTimeoutOfWriteIsAmbiguous", "pkg/pve TestReadsAreRepeated", "pkg/pve TestRequestsPerNodeAreLimited",
			},
			there: "requests have no timeout, no limit and no retry",
			here:  "all have a timeout, each node a limit; only reads are repeated",
		},
		{
			name: "one endpoint", by: []string{"pkg/pve TestUnsentWritesGoToTheNextEndpoint", "pkg/pve TestReadsAreRepeated"},
			there: "there is one endpoint: when that host is down, nothing goes",
			here:  "a region has several, and the next one is taken",
		},
		{
			name: "guest without an agent blocks", run: guestWithoutAgent,
			there: "each look at a guest whose agent does not answer blocks the worker for five seconds (#506)",
			here:  "the guest agent is asked for addresses of DHCP and SLAAC only, at most every five minutes while it is silent",
		},
		{
			name: "endpoint is polled", by: []string{"test/integration TestContractControlPlaneEndpointIsTakenFromTheCluster"},
			there: "an endpoint that another provider sets is polled for five times a second",
			here:  "a watch tells",
		},
		{
			name: "addresses are polled", by: []string{"test/integration TestBadMachines/empty address pool"},
			there: "claims of addresses are not watched",
			here:  "a watch tells",
		},
		{
			name: "more than ten network devices", by: []string{"pkg/plan/network TestAGuestWithMoreThanTenDevicesRoutesOverTheLowestNumber"},
			there: "net10 sorts before net2: more than ten devices are refused",
			here:  "devices are ordered by number",
		},
		{
			name: "seed goes to the first storage", by: []string{
				"pkg/plan/placement TestTheSeedGoesTo", "pkg/plan/vmconfig TestTheDriveOfTheSeed", "test/integration TestBadMachines/unknown storage for the seed",
			},
			there: "the seed goes to the first storage for ISO images and to a fixed drive (#782)",
			here:  "`bootstrap.storage` names it; a drive that is free is used",
		},
		{
			name: "dry run is refused", by: []string{"test/integration TestTopologyControllerMayAskWhatAChangeWouldDo"},
			there: "templates refuse the dry run of the topology controller: ClusterClass rollouts hang (#735)",
			here:  "it may ask",
		},
		{
			name: "global credentials win", by: []string{"test/integration TestAClusterSpansTwoProxmoxVEClusters"},
			there: "credentials of a cluster count only when there are no global ones",
			here:  "each region has its own; there are no global ones",
		},
		{
			name: "Secret of another namespace is read", run: secretElsewhere,
			there: "a cluster may name a Secret of any namespace",
			here:  "credentials are of the cluster's namespace",
		},
		{
			name: "Secret is changed", run: secretStays,
			there: "the credentials get an owner and a finalizer, for which the manager may patch every Secret",
			here:  "Secrets are read only",
		},
		{
			name: "all Secrets are cached", run: secretsAreNotCached,
			there: "all Secrets of the cluster are kept in memory",
			here:  "the manager may get a Secret, not list or watch them",
		},
		{
			name: "TLS is not verified", by: []string{
				"test/integration TestBadClusters/untrusted", "test/integration TestBadClusters/another fingerprint", "pkg/pve TestTrust",
			},
			there: "certificates are not verified unless one asks for it; fingerprints cannot be pinned",
			here:  "they always are, by CA or by fingerprint; there is no switch",
		},
		{
			name: "bad credentials end the process", by: []string{"test/integration TestBadClusters/bad token", "test/integration TestProxmoxGoesAwayAndComesBack"},
			there: "bad global credentials end the manager at its start",
			here:  "they are a condition of the clusters that use them",
		},
		{
			name: "HA-managed VM stays", run: haManagedVM,
			there: "a VM that high availability manages cannot be deleted (#216)",
			here:  "it goes, and so does its HA resource",
		},
	}
}
