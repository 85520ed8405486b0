package v1beta1

// RawConfig are keys of a VM's config in Proxmox VE's own words.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=64
type RawConfig map[string]string
