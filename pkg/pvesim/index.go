package pvesim

// index is the handler of an endpoint that lists what is below it.
func index(key string, names ...string) func(*call) reply {
	list := make([]map[string]string, 0, len(names))
	for _, name := range names {
		list = append(list, map[string]string{key: name})
	}
	return func(*call) reply { return ok(list) }
}
