package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// ParseSize reads a size such as 10G, 512M, 3.5G or 4096; what is no size counts as 0.
func ParseSize(s string) proxmox.Bytes {
	unit := 1.0
	for i, suffix := range []string{"K", "M", "G", "T"} {
		if cut, ok := strings.CutSuffix(s, suffix); ok {
			s = cut
			unit = float64(int64(1) << (10 * (i + 1)))
			break
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n < 0 || n*unit > 1<<62 {
		return 0
	}
	return proxmox.Bytes(n * unit)
}

// FormatSize writes a size with the largest unit that divides it (PVE::JSONSchema::format_size).
func FormatSize(n proxmox.Bytes) string {
	units := []string{"", "K", "M", "G", "T"}
	i := 0
	for n%1024 == 0 && i < len(units)-1 {
		n /= 1024
		i++
	}
	return fmt.Sprintf("%d%s", n, units[i])
}
