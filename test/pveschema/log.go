package pveschema

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// Request is a line of a request log.
type Request struct {
	Method string `json:"method"`
	// Path is without /api2/json.
	Path   string            `json:"path"`
	Params map[string]string `json:"params"`
	// File is what an upload carried.
	File struct {
		Name string `json:"name"`
	} `json:"file"`
}

// ReadLog reads a request log: a line of JSON for each request.
func ReadLog(log io.Reader) ([]Request, error) {
	var requests []Request
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var request Request
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			return nil, fmt.Errorf("read line %d of the request log: %w", len(requests)+1, err)
		}
		if request.File.Name != "" {
			if request.Params == nil {
				request.Params = map[string]string{}
			}
			request.Params["filename"] = request.File.Name
		}
		requests = append(requests, request)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the request log: %w", err)
	}
	return requests, nil
}

// Misfits says what is wrong with requests, each once.
func (s *Schema) Misfits(requests []Request) []string {
	var misfits []string
	seen := map[string]bool{}
	for _, request := range requests {
		if err := s.Validate(request.Method, request.Path, request.Params); err != nil && !seen[err.Error()] {
			seen[err.Error()] = true
			misfits = append(misfits, err.Error())
		}
	}
	return misfits
}
