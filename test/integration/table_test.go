package integration_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// table asks the API server for objects of ours as kubectl does.
func (b *bench) table(resource string) metav1.Table {
	b.t.Helper()
	transport, err := rest.HTTPClientFor(b.env.config)
	b.Expect(err).NotTo(HaveOccurred())
	url := strings.TrimSuffix(b.env.config.Host, "/") + "/apis/" + v1beta1.GroupVersion.String() + "/namespaces/" + b.namespace + "/" + resource
	request, err := http.NewRequestWithContext(b.ctx, http.MethodGet, url, nil)
	b.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	answer, err := transport.Do(request)
	b.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	b.Expect(err).NotTo(HaveOccurred())
	var table metav1.Table
	b.Expect(json.Unmarshal(body, &table)).To(Succeed(), "%s", body)
	return table
}
