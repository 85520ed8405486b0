package pve

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// RequestLog writes a JSON line for each request that is sent, with every secret masked. It is safe for concurrent use,
// and several processes may append to one file. A nil RequestLog writes nothing.
type RequestLog struct {
	mu  sync.Mutex
	out io.Writer
}

// RequestRecord is one line of the request log.
type RequestRecord struct {
	// Time is when the request was sent.
	Time time.Time `json:"time"`
	// Region is the PVE cluster, Endpoint the host and port that was asked.
	Region   proxmox.RegionName `json:"region"`
	Endpoint string             `json:"endpoint"`
	Method   string             `json:"method"`
	// Path is without /api2/json and unescaped.
	Path string `json:"path"`
	// Params are the query of GET and DELETE, else the form, with secrets masked.
	Params map[string]string `json:"params,omitempty"`
	// File describes what an upload carried.
	File *FileRecord `json:"file,omitempty"`
	// Status is the HTTP status, 0 if no answer came.
	Status int `json:"status"`
	// Class is the error's class, empty for a success.
	Class string `json:"class,omitempty"`
	// Seconds is how long the answer took.
	Seconds float64 `json:"seconds"`
}

// FileRecord describes the file of an upload.
type FileRecord struct {
	Name   string `json:"name"`
	Size   int    `json:"size"`
	SHA256 string `json:"sha256"`
}

// fileSum is what the chain knows of an uploaded file.
type fileSum = FileRecord

// NewRequestLog writes to a writer, one Write per line.
func NewRequestLog(out io.Writer) *RequestLog { return &RequestLog{out: out} }

// OpenRequestLog appends to a file, which it creates for its owner alone.
func OpenRequestLog(path string) (*RequestLog, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open request log: %w", err)
	}
	return NewRequestLog(file), nil
}

// Close closes the file, if it is one.
func (l *RequestLog) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if closer, ok := l.out.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// write appends a line. A log that cannot be written is no reason to fail the request.
func (l *RequestLog) write(record RequestRecord) {
	if l == nil {
		return
	}
	line, err := json.Marshal(record)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.out.Write(append(line, '\n'))
}

// isSecretParam says which parameters are never written anywhere.
func isSecretParam(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"password", "token", "secret", "ticket", "sshkeys"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// maskParams makes parameters fit to be written down.
func maskParams(params url.Values) map[string]string {
	if len(params) == 0 {
		return nil
	}
	shown := make(map[string]string, len(params))
	for name, values := range params {
		shown[name] = strings.Join(values, ",")
		if isSecretParam(name) {
			shown[name] = masked
		}
	}
	return shown
}

// recorder tells log and metrics of each request as it is sent.
type recorder struct {
	region  proxmox.RegionName
	log     *RequestLog
	metrics *metrics
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	// Wall time on purpose: the log is read next to PVE's own, and the injected clock is for what we decide.
	start := time.Now()
	answer, err := r.next.RoundTrip(req)
	took := time.Since(start)
	call := callOf(req)
	r.metrics.request(r.region, call, ClassOf(err), took)
	record := r.record(req, answer, err)
	record.Time, record.Seconds = start.UTC(), took.Seconds()
	r.log.write(record)
	return answer, err
}

func (r *recorder) record(req *http.Request, answer *http.Response, err error) RequestRecord {
	call := callOf(req)
	record := RequestRecord{
		Region: r.region, Endpoint: req.URL.Host, Method: call.method, Path: unescape(call.path),
		Params: maskParams(call.params), File: call.file, Status: statusOf(answer, err),
	}
	if err != nil {
		record.Class = ClassOf(err).String()
	}
	return record
}

// unescape shows a path as PVE sees it.
func unescape(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}
