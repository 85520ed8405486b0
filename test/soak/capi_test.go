package soak_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

const (
	clusterName      = "c1"
	credentialsName  = "credentials"
	machineFinalizer = "machine.cluster.x-k8s.io"
	claimFinalizer   = "ipam.cluster.x-k8s.io/ReleaseAddress"
)

// machine is what the simulation knows of a Machine.
type machine struct {
	name string
	spec v1beta1.ProxmoxMachineSpec
	// deleted says that somebody has asked for its deletion; gone that it came to its end.
	deleted, gone bool
	secret        string
	bootstrapAt   time.Time
	uuid          string
	providerID    string
	// booted says that its guest came up with its seed.
	booted   bool
	hasNode  bool
	nodeSoon bool
	// destroyed says that somebody had its VM destroyed behind our back; vanished that it was seen to be gone thereafter.
	destroyed, vanished bool
	// adopted says that its VM became another's at the last moment, so that only a destroy could know better.
	adopted bool
	// off says that it is wished to be.
	off bool
	// changes counts those of its spec; firewalls are all that its spec ever asked for, dropped the tags that it asks for no more.
	changes   int
	firewalls []v1beta1.Firewall
	dropped   []string
	// byHand is what somebody changed of its VM's config, by key; options are those of its firewall while nothing asks for others.
	byHand  map[string]byHand
	options map[string]string
	// managed says that an administrator made an HA resource of its VM; isMeddled that somebody changed what is seen only when a
	// manager starts.
	managed, isMeddled bool
}

func (s *simulation) sortedMachines() []*machine {
	var out []*machine
	for _, name := range slices.Sorted(maps.Keys(s.machines)) {
		out = append(out, s.machines[name])
	}
	return out
}

// living are the machines that are wanted.
func (s *simulation) living() []*machine {
	return slices.DeleteFunc(s.sortedMachines(), func(m *machine) bool { return m.deleted || m.gone })
}

// soonSync has the stand-ins look at what there is, soon.
func (s *simulation) soonSync() {
	if s.syncing {
		return
	}
	s.syncing = true
	s.mu.Lock()
	delay := time.Duration(s.drawn.Int64N(int64(time.Second)))
	s.mu.Unlock()
	s.after(delay, func() {
		s.syncing = false
		s.syncCluster()
		for _, m := range s.sortedMachines() {
			s.syncMachine(m)
		}
		s.collectGarbage()
		s.syncClaims()
	})
}

// must reports what the harness could not do.
func (s *simulation) must(err error) {
	if err != nil {
		s.violate("harness: %v", err)
	}
}

func (s *simulation) syncCluster() {
	infrastructure, found := find[*v1beta1.ProxmoxCluster](s.api, clusterName)
	cluster, known := find[*clusterv1.Cluster](s.api, clusterName)
	if found && known && ptr.Deref(infrastructure.Status.Initialization.Provisioned, false) && !ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false) {
		cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
		s.must(s.api.updateStatus(cluster))
	}
}

// addMachine makes a Machine and its ProxmoxMachine.
func (s *simulation) addMachine(name string) {
	m := &machine{name: name, spec: s.drawSpec(), secret: "joinsecret-" + s.newUUID(), bootstrapAt: time.Now().Add(s.upTo(20 * time.Second)), byHand: map[string]byHand{}, options: map[string]string{}}
	m.firewalls = []v1beta1.Firewall{m.spec.Firewall}
	if m.spec.Source.UsesTemplate() && s.setting.walledTemplate {
		m.options = map[string]string{"policy_in": "ACCEPT", "log_level_out": "info", "enable": "1"}
	}
	s.keepSecret(m.secret)
	s.machines[name] = m
	owner := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: clusterLabels(), Finalizers: []string{machineFinalizer}},
		Spec: clusterv1.MachineSpec{ClusterName: clusterName, InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: v1beta1.GroupVersion.Group, Kind: machineKind, Name: name,
		}},
	}
	s.begin(name)
	s.must(s.api.create(owner))
	s.must(s.api.create(&v1beta1.ProxmoxMachine{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: clusterLabels(), OwnerReferences: []metav1.OwnerReference{{
			APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: name, UID: owner.UID,
		}}},
		Spec: m.spec,
	}))
	s.after(time.Until(m.bootstrapAt), s.soonSync)
}

func clusterLabels() map[string]string {
	return map[string]string{clusterv1.ClusterNameLabel: clusterName}
}

func (s *simulation) keepSecret(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets = append(s.secrets, secret)
}

// syncMachine does what Cluster API's core and the bootstrap provider would do for a Machine now.
func (s *simulation) syncMachine(m *machine) {
	owner, found := find[*clusterv1.Machine](s.api, m.name)
	if !found || m.gone {
		return
	}
	infrastructure, made := find[*v1beta1.ProxmoxMachine](s.api, m.name)
	if m.deleted {
		s.endMachine(m, owner, infrastructure, made)
		return
	}
	if owner.Spec.Bootstrap.DataSecretName == nil && !time.Now().Before(m.bootstrapAt) {
		s.must(s.api.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: m.name + "-bootstrap"}, Data: map[string][]byte{
			"value": []byte("#cloud-config\nruncmd: [\"kubeadm join --token " + m.secret + "\"]\n"), "format": []byte("cloud-config"),
		}}))
		owner.Spec.Bootstrap.DataSecretName = ptr.To(m.name + "-bootstrap")
		s.must(s.api.update(owner))
	}
	if m.booted && made && infrastructure.Spec.ProviderID != "" && owner.Status.NodeRef.Name == "" {
		s.giveNode(m, owner)
	}
}

// giveNode tells the Machine of its Node, a while after its guest came up.
func (s *simulation) giveNode(m *machine, owner *clusterv1.Machine) {
	if !m.nodeSoon {
		m.nodeSoon = true
		s.after(s.upTo(30*time.Second), func() { m.hasNode = true; s.soonSync() })
	}
	if m.hasNode {
		owner.Status.NodeRef.Name = m.name
		s.must(s.api.updateStatus(owner))
	}
}

// endMachine deletes what belongs to the Machine, the ProxmoxMachine first.
func (s *simulation) endMachine(m *machine, owner *clusterv1.Machine, infrastructure *v1beta1.ProxmoxMachine, made bool) {
	switch {
	case owner.DeletionTimestamp.IsZero():
		s.must(s.api.delete(owner))
	case made && infrastructure.DeletionTimestamp.IsZero():
		s.must(s.api.delete(infrastructure))
	case !made:
		s.must(s.api.delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: m.name + "-bootstrap", Namespace: namespace}}))
		controllerutil.RemoveFinalizer(owner, machineFinalizer)
		m.gone = true
		s.trace.add("capi", "Machine %s is gone", m.name)
		s.must(s.api.update(owner))
	}
}

// collectGarbage deletes claims whose machine is gone, and addresses whose claim is, as Kubernetes does.
func (s *simulation) collectGarbage() {
	machines := map[types.UID]bool{}
	for _, machine := range all[*v1beta1.ProxmoxMachine](s.api) {
		machines[machine.UID] = true
	}
	for _, claim := range all[*ipamv1.IPAddressClaim](s.api) {
		isLeft := func(owner metav1.OwnerReference) bool { return machines[owner.UID] }
		if len(claim.OwnerReferences) > 0 && claim.DeletionTimestamp.IsZero() && !slices.ContainsFunc(claim.OwnerReferences, isLeft) {
			s.must(s.api.delete(claim))
		}
	}
	// The IPAM contract has an address owned by its claim.
	for _, address := range all[*ipamv1.IPAddress](s.api) {
		if _, claimed := find[*ipamv1.IPAddressClaim](s.api, address.Spec.ClaimRef.Name); !claimed && address.DeletionTimestamp.IsZero() {
			s.must(s.api.delete(address))
		}
	}
}

// syncClaims is the IPAM provider. Like the in-cluster one it takes the address as soon as its claim is being deleted.
func (s *simulation) syncClaims() {
	for _, seen := range all[*ipamv1.IPAddressClaim](s.api) {
		claim, found := find[*ipamv1.IPAddressClaim](s.api, seen.Name)
		if !found {
			continue
		}
		switch {
		case !claim.DeletionTimestamp.IsZero():
			s.must(s.api.delete(&ipamv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Namespace: namespace}}))
			if controllerutil.RemoveFinalizer(claim, claimFinalizer) {
				s.must(s.api.update(claim))
			}
		case controllerutil.AddFinalizer(claim, claimFinalizer):
			s.must(s.api.update(claim))
		case claim.Status.AddressRef.Name == "":
			s.giveAddress(claim)
		}
	}
}

func (s *simulation) giveAddress(claim *ipamv1.IPAddressClaim) {
	if time.Since(claim.CreationTimestamp.Time) < s.setting.slowIPAM {
		s.after(s.setting.slowIPAM, s.soonSync)
		return
	}
	used := map[string]bool{}
	for _, address := range all[*ipamv1.IPAddress](s.api) {
		used[address.Spec.Address] = true
	}
	number := 10
	for used[fmt.Sprintf("10.1.0.%d", number)] {
		number++
	}
	if existing, there := find[*ipamv1.IPAddress](s.api, claim.Name); there {
		if !existing.DeletionTimestamp.IsZero() {
			return // the last one of this name has to go first
		}
	} else {
		s.must(s.api.create(&ipamv1.IPAddress{
			ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Labels: clusterLabels()},
			Spec: ipamv1.IPAddressSpec{
				ClaimRef: ipamv1.IPAddressClaimReference{Name: claim.Name}, PoolRef: claim.Spec.PoolRef,
				Address: fmt.Sprintf("10.1.0.%d", number), Prefix: ptr.To[int32](16), Gateway: "10.1.0.1",
			},
		}))
	}
	claim.Status.AddressRef.Name = claim.Name
	s.must(s.api.updateStatus(claim))
}

// takeBoots notes whose guests came up.
func (s *simulation) takeBoots() {
	s.mu.Lock()
	booted := s.booted
	s.booted = nil
	s.mu.Unlock()
	slices.Sort(booted)
	for _, id := range booted {
		for _, m := range s.sortedMachines() {
			if m.uuid != "" && proxmox.SMBIOSUUID(m.uuid) == id && !m.booted {
				m.booted = true
				s.trace.add("guest", "%s is up", m.name)
				s.soonSync()
			}
		}
	}
}

// restore makes all objects anew, as Velero does: with other UIDs and without status.
func (s *simulation) restore() {
	uids := map[string]string{}
	var objects []client.Object
	for _, name := range func() []ref { s.api.mu.Lock(); defer s.api.mu.Unlock(); return s.api.sorted() }() {
		s.api.mu.Lock()
		object, ok := s.api.objects[name].DeepCopyObject().(client.Object)
		s.api.mu.Unlock()
		if ok {
			objects = append(objects, object)
		}
	}
	for _, object := range objects {
		bare, _ := object.DeepCopyObject().(client.Object)
		bare.SetFinalizers(nil)
		if len(object.GetFinalizers()) > 0 {
			s.must(s.api.update(bare))
		}
		s.must(s.api.delete(bare))
	}
	rank := func(object client.Object) int { return slices.Index([]string{"Cluster", "Machine"}, kindOf(object)) }
	slices.SortStableFunc(objects, func(a, b client.Object) int { return rank(b) - rank(a) })
	for _, object := range objects {
		object.SetDeletionTimestamp(nil)
		object.SetDeletionGracePeriodSeconds(nil)
		clearStatus(object)
		old := string(object.GetUID())
		s.must(s.api.create(object))
		uids[old] = string(object.GetUID())
	}
	s.relink(uids)
}

// relink gives the owner references of restored objects the new UIDs, as Cluster API's controllers do.
func (s *simulation) relink(uids map[string]string) {
	for _, seen := range all[*v1beta1.ProxmoxMachine](s.api) {
		object, _ := find[*v1beta1.ProxmoxMachine](s.api, seen.Name)
		if owner, found := find[*clusterv1.Machine](s.api, seen.Name); found {
			object.OwnerReferences[0].UID = owner.UID
			s.must(s.api.update(object))
		}
	}
	for _, seen := range all[*ipamv1.IPAddressClaim](s.api) {
		object, _ := find[*ipamv1.IPAddressClaim](s.api, seen.Name)
		for i := range object.OwnerReferences {
			owner := &object.OwnerReferences[i]
			owner.UID = types.UID(cmp.Or(uids[string(owner.UID)], string(owner.UID)))
		}
		s.must(s.api.update(object))
	}
	if object, found := find[*v1beta1.ProxmoxCluster](s.api, clusterName); found {
		owner, _ := find[*clusterv1.Cluster](s.api, clusterName)
		object.OwnerReferences[0].UID = owner.UID
		s.must(s.api.update(object))
	}
	s.trace.add("velero", "%d objects are made anew", len(uids))
}

func clearStatus(object client.Object) {
	switch object := object.(type) {
	case *clusterv1.Cluster:
		object.Status = clusterv1.ClusterStatus{}
	case *clusterv1.Machine:
		object.Status = clusterv1.MachineStatus{}
	case *ipamv1.IPAddressClaim:
		object.Status = ipamv1.IPAddressClaimStatus{}
	case *v1beta1.ProxmoxCluster:
		object.Status = v1beta1.ProxmoxClusterStatus{}
	case *v1beta1.ProxmoxMachine:
		object.Status = v1beta1.ProxmoxMachineStatus{}
	}
}
