package integration_test

// kproximate is the first of Part C.
func kproximate() peer {
	return peer{
		name: "kproximate",
		studied: "[kproximate](https://github.com/jedrw/kproximate) at 6162dad, May 2026, and its fork " +
			"[paradoxe35/kproximate](https://github.com/paradoxe35/kproximate) at 8228424, June 2025.",
		defects: []defect{
			{
				name: "node that never joins wedges its worker", by: []string{"test/integration TestManyMachinesAtOnce"},
				there: "a worker waits without end for a node that never joins",
				here:  "no worker waits: twenty machines without Nodes go through ten workers",
			},
			{
				name: "minimums are dropped", by: []string{
					"test/integration TestPeers/karpenter-provider-proxmox/excluded host is chosen",
					"pkg/plan/placement TestTheChoicePassesEveryFilterAndEveryOtherHostHasAReason",
				},
				there: "when no host meets the minimums they are dropped; when all are excluded the first is taken",
				here:  "filters are hard, and each host's refusal is in the condition",
			},
			{
				name: "offline host is chosen", by: []string{"test/integration TestPeers/CAPMOX/one offline host fails every pick"},
				there: "no strategy looks whether a host is online",
				here:  "one that is offline is passed over",
			},
			{
				name: "ties are random", by: []string{
					"pkg/plan/placement TestTheOrderOfTheHostsDoesNotMatter", "pkg/plan/placement TestTheHostThatIsChosen/among equals, has the lowest name",
				},
				there: "the order of a map decides between equal hosts",
				here:  "the lowest name does",
			},
			{
				name: "identity is a name", run: lookAlike,
				there: "a VM belongs to it when its name looks so",
				here:  "a name proves nothing; a drawn UUID does",
			},
			{
				name: "refused parameter means taken VMID", run: refusedParameter,
				there: "after any refused parameter the next VMID is tried",
				here:  "only «already exists» moves on",
			},
			{
				name: "first template of that name", by: []string{"test/integration TestBadMachines/two templates of one name"},
				there: "the first template of a name is taken",
				here:  "two on one node are named in the condition",
			},
			{
				name: "every node drifts for ever", by: []string{
					"test/integration TestContractSteadyStateCostsNothing", "pkg/plan/vmconfig TestAppliedOnceADiffIsEmpty",
				},
				there: "a label that is not written makes every node look changed: all are replaced, without end",
				here:  "applied once, a difference is empty; at rest nothing is written",
			},
			{
				name: "lookup error is fatal", by: []string{
					"test/integration TestProxmoxGoesAwayAndComesBack", "test/integration TestARegionThatIsDownDoesNotStandInTheWayOfAnother",
				},
				there: "an error of Proxmox VE ends the controller",
				here:  "it is a condition, and heals by itself",
			},
			{
				name: "bare object panics", by: []string{
					"test/integration TestContractNothingIsWrittenBeforeTheOwnerReference", "test/integration TestContractOrphanedMachineIsReleased",
				},
				there: "a pod without an owner, or a label without «=», panics",
				here:  "machines without an owner wait or are released; every test fails on a panic in the log",
			},
			{
				name: "keys are mangled", by: []string{"pkg/plan/cloudinit TestUserDataIsKeptToTheByte"},
				there: "SSH keys with two spaces are mangled",
				here:  "user data is passed on to the byte",
			},
			{
				name: "TLS is not verified", by: []string{"test/integration TestBadClusters/untrusted", "pkg/pve TestTrust"},
				there: "TLS is not verified, or not used",
				here:  "it always is",
			},
			{
				name: "retries of messages", lacks: queues,
				there: "after two deliveries an event is lost and its node stays cordoned",
			},
			{
				name: "labels come after the join", lacks: nodeLabels,
				there: "labels are written after the join, when pods are on the node already; one with two «=» is cut",
			},
			{
				name: "deadline of a drain", lacks: draining,
				there: "a drain that runs into its deadline counts as done; a disruption budget ends it",
			},
			{
				name: "scale from zero", lacks: autoscaling,
				there: "shortage of memory alone never makes the first node; a pod as large as a node is ignored; taints and affinity are",
			},
			{
				name: "scale down", lacks: autoscaling,
				there: "bytes are compared with MiB when the node to go is chosen; static workers count on one side only",
			},
		},
	}
}

// kubeNodeSmith is the second of Part C.
func kubeNodeSmith() peer {
	return peer{
		name:    "KubeNodeSmith",
		studied: "[KubeNodeSmith](https://github.com/parawell/kubenodesmith) at 1f16cad, January 2026.",
		defects: []defect{
			{
				name: "deletion without a node name leaks the VM", run: deletionWithoutStatus,
				there: "a machine that is deleted before it registered asks no node for its VM: «not found», and the VM is leaked",
				here:  "the VM is found by its reservation, whatever the status says",
			},
			{
				name: "failed claim still counts", run: failedMachineFreesItsPlace,
				there: "claims that failed stay and count as capacity to come, so that nothing is made any more",
				here:  "a machine that is deleted frees its place, also when it never had a VM",
			},
			{
				name: "VMs in flight are not reserved", by: []string{"test/integration TestManyMachinesAtOnce"},
				there: "machines on their way are not counted, neither their memory nor their VMIDs",
				here:  "reservations count at once",
			},
			{
				name: "range of one VMID", by: []string{"test/integration TestPeers/CAPMOX/used up VMID range is terminal"},
				there: "a range of one VMID is accepted and fails later",
				here:  "it serves one machine at a time",
			},
			{
				name: "tag is a part of another", run: tagIsWhole,
				there: "a tag counts when it is a part of another; an empty one always does",
				here:  "a mark counts as a whole",
			},
			{
				name: "MAC prefix is changed", by: []string{
					"pkg/plan/network TestEveryMACAddressIsUnicastAndLocallyAdministered", "pkg/plan/network TestAMACAddressFollowsFromIdentityAndDevice",
				},
				there: "the prefix of MAC addresses is changed, and duplicates are not looked for",
				here:  "a MAC address follows from the VM's identity",
			},
			{
				name: "hosts are shuffled", by: []string{"pkg/plan/placement TestTheOrderOfTheHostsDoesNotMatter"},
				there: "hosts are chosen at random",
				here:  "the same state gives the same choice",
			},
			{
				name: "cordon and drain", lacks: draining,
				there: "nodes are said to be cordoned and drained, and are not",
			},
			{
				name: "limits and windows", lacks: autoscaling,
				there: "limits are all or nothing; windows and grace periods are never read",
			},
			{
				name: "size of the first node", lacks: autoscaling,
				there: "without a node, new ones are as small as the largest pod; plain pods never make one",
			},
		},
	}
}

// autoscalerContract is the last of Part C.
func autoscalerContract() peer {
	return peer{
		name: "cluster-autoscaler and Karpenter for Cluster API",
		studied: "What providers get wrong with [cluster-autoscaler](https://github.com/kubernetes/autoscaler) and " +
			"[karpenter-provider-cluster-api](https://github.com/kubernetes-sigs/karpenter-provider-cluster-api) at 2e0fec7, 2026.",
		defects: []defect{
			{
				name: "provider IDs collide", run: providerIDs,
				there: "`proxmox://region/vmid` ends alike in two regions, and cluster-autoscaler goes by the end (#6397)",
				here:  "it ends in the VM's UUID",
			},
			{
				name: "shortage is a failure", by: []string{"test/integration TestCapacityThatIsFreedIsUsed", "test/integration TestContractCRDs"},
				there: "a failure message for a shortage has the machine replaced over and over (#9961)",
				here:  "there is no failure message; a shortage is a condition",
			},
			{
				name: "capacity is not published", lacks: autoscaling,
				there: "templates publish no capacity, or one that cannot be read, or no architecture",
			},
			{
				name: "one bad group hides all", lacks: autoscaling,
				there: "one bad annotation hides every node group",
			},
			{
				name: "bad capacity panics", lacks: instances,
				there: "a bad annotation of capacity panics; documented labels break the binding of claims; a machine that is deleted early is stuck",
			},
		},
	}
}
