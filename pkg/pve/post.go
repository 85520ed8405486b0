package pve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// post sends a body whose length is known, because pveproxy refuses chunks, and returns the answer's data.
func (c *Client) post(ctx context.Context, call *call, contentType string, body []byte) (json.RawMessage, error) {
	req, err := http.NewRequestWithContext(withCall(ctx, call), call.method, c.base+call.path, bytes.NewReader(body))
	if err != nil {
		return nil, c.inRegion(call.refuse(err.Error()))
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Accept", "application/json")
	answer, err := c.http.Do(req)
	if err != nil {
		return nil, call.asError(c.region, err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, call.asError(c.region, err)
	}
	var wrapped struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(text, &wrapped); err != nil {
		return nil, call.asError(c.region, fmt.Errorf("decode answer: %w", err))
	}
	return wrapped.Data, nil
}

// task reads the task identifier of an answer; the chain has checked that there is one if it is due.
func task(data json.RawMessage, err error) (proxmox.UPID, error) {
	return proxmox.UPID(scalarText(data)), err
}
