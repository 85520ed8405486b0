package soak_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// foreignUUID is of a machine of another management cluster.
const foreignUUID = "0f0e0d0c-0b0a-4908-8706-050403020100"

// furnish makes what is there before the first machine.
func (s *simulation) furnish() error {
	s.world.AddUser(pvesim.UserSpec{ID: "root@pam", Password: rootPassword})
	first, err := http.NewRequestWithContext(s.ctx, http.MethodGet, "https://pve/", http.NoBody)
	if err != nil {
		return err
	}
	s.login(first)
	s.newToken()
	const other = foreignUUID
	for _, sentinel := range []pvesim.VMSpec{
		{VMID: 101, Config: map[string]string{"name": "m1", "memory": "512", "description": vmconfig.Description("m1", proxmox.SMBIOSUUID(other)), "tags": vmconfig.IdentityTag(proxmox.SMBIOSUUID(other)), "scsi0": "local-lvm:vm-101-disk-0,size=4G"}},
		{VMID: 103, State: "running", Config: map[string]string{"name": "m2", "memory": "512", "description": "CAPVE-UUID:", "tags": "capve-"}},
		{VMID: 104, Config: map[string]string{"name": "m3", "memory": "512", "description": "Cluster API machine m3, managed by CAPVE.", "scsi0": "shared:104/vm-104-disk-0.qcow2,size=4G"}},
	} {
		sentinel.Node = proxmox.NodeName(fmt.Sprintf("pve%d", 1+int(sentinel.VMID)%s.setting.nodes))
		s.addSentinel(sentinel)
	}
	s.furnishWalls()
	for _, vm := range s.world.VMs() { // the templates
		s.sentinels[vm.VMID] = s.looks(vm.VMID)
	}
	s.must(s.world.AddVolume(pvesim.VolumeSpec{ID: "local:iso/capve-" + foreignUUID + ".iso", Node: "pve1", Size: 1 << 20}))
	for n := range s.setting.nodes {
		s.must(s.world.AddVolume(pvesim.VolumeSpec{ID: imageName, Node: proxmox.NodeName(fmt.Sprintf("pve%d", n+1)), Size: 3 << 30}))
	}
	s.foreignVolumes = s.volumesOf(foreignUUID)
	s.must(s.api.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: credentialsName}, Data: s.credentials()}))
	owner := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName}, Spec: clusterv1.ClusterSpec{
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: v1beta1.GroupVersion.Group, Kind: clusterKind, Name: clusterName},
	}}
	s.must(s.api.create(owner))
	s.must(s.api.create(&v1beta1.ProxmoxCluster{
		ObjectMeta: metav1.ObjectMeta{Name: clusterName, Labels: clusterLabels(), OwnerReferences: []metav1.OwnerReference{{
			APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: clusterName, UID: owner.UID,
		}}},
		Spec: v1beta1.ProxmoxClusterSpec{
			ControlPlaneEndpoint: v1beta1.APIEndpoint{Host: "10.1.255.254", Port: 6443},
			Regions: []v1beta1.Region{{
				Name: "home", Endpoints: s.drawEndpoints(),
				CredentialsRef: v1beta1.SecretReference{Name: credentialsName}, VMIDRange: v1beta1.VMIDRange{Start: 100, End: 160},
			}},
		},
	}))
	return nil
}

// drawEndpoints draws which hosts are asked.
func (s *simulation) drawEndpoints() []string {
	var endpoints []string
	for n := range s.setting.nodes {
		endpoints = append(endpoints, fmt.Sprintf("https://pve%d", n+1))
	}
	return endpoints[:min(len(endpoints), 1+s.random.IntN(3))]
}

// privileges are those of docs/permissions.md, and those to see all.
func (s *simulation) privileges() []string {
	agent := "VM.GuestAgent.Audit"
	if s.setting.version == pvesim.V84 {
		agent = "VM.Monitor"
	}
	return append(strings.Fields(`Datastore.Allocate Datastore.AllocateSpace Datastore.AllocateTemplate Datastore.Audit Pool.Audit Pool.Allocate SDN.Use Sys.Audit
		Sys.Console VM.Allocate VM.Audit VM.Clone VM.Config.CDROM VM.Config.CPU VM.Config.Cloudinit VM.Config.Disk VM.Config.HWType VM.Config.Memory
		VM.Config.Network VM.Config.Options VM.PowerMgmt`), agent)
}

// furnishWalls makes the security groups, the firewall of the templates and, on 8, the HA group, on 9 an HA rule.
func (s *simulation) furnishWalls() {
	do := func(method, path string, form url.Values) {
		if answer, done := s.ask("pve1", method, path, form); !done {
			s.violate("harness: %s %s: %s", method, path, answer)
		}
	}
	do("PUT", "/cluster/firewall/options", url.Values{"enable": {"1"}})
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		do("POST", "/cluster/firewall/groups", url.Values{"group": {name}})
		do("POST", "/cluster/firewall/groups/"+name, url.Values{"type": {"in"}, "action": {"ACCEPT"}, "proto": {"tcp"}, "dport": {groups[name]}, "enable": {"1"}})
	}
	if s.setting.walledTemplate {
		for _, vm := range s.world.VMs() {
			path := vmPath(vm) + "/firewall"
			do("PUT", path+"/options", url.Values{"policy_in": {"ACCEPT"}, "log_level_out": {"info"}, "enable": {"1"}})
			do("POST", path+"/rules", url.Values{"type": {"in"}, "action": {"DROP"}, "proto": {"tcp"}, "dport": {"22"}, "enable": {"1"}, "comment": {"theirs"}})
			do("POST", path+"/ipset", url.Values{"name": {"ipfilter-net0"}})
			do("POST", path+"/ipset/ipfilter-net0", url.Values{"cidr": {"10.1.0.0/16"}})
		}
	}
	do("POST", "/cluster/ha/resources", url.Values{"sid": {fmt.Sprintf("vm:%d", haVM)}, "state": {"ignored"}})
	if s.setting.version == pvesim.V84 {
		do("POST", "/cluster/ha/groups", url.Values{"group": {haGroup}, "nodes": {"pve1"}})
		return
	}
	do("POST", "/cluster/ha/rules", url.Values{"rule": {haRule}, "type": {"node-affinity"}, "resources": {fmt.Sprintf("vm:%d", haVM)}, "nodes": {"pve1"}})
}
