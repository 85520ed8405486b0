package vmconfig

import "slices"

// row is a field of T that a key of a config says, or a part of one.
type row[T any] struct {
	Field
	codec[T]
	// usual is what Proxmox VE takes where the config does not say it; empty where that is not known.
	usual string
	// same reports whether two values mean the same; nil compares texts.
	same func(a, b string) bool
	// excludes are parts that contradict this one: they go when it is set.
	excludes []string
	// kept says that what was made with it stays when the field changes.
	kept bool
}

// The tables of all fields that a config says. They are made once: comparing a config is what every reconcile does.
//
//nolint:gochecknoglobals // constant tables
var (
	specTable   = specRows()
	pciTable    = pciRows()
	usbTable    = usbRows()
	deviceTable = deviceRows()
	diskTable   = diskOptionRows()
	fieldKeys   = keysOfFields()
)

// want is what a config is to say in one place.
type want struct {
	Field
	value    string
	usual    string
	same     func(a, b string) bool
	excludes []string
	kept     bool
	// atStart says that it is not changed while the VM runs.
	atStart bool
}

// wants are what the rows have set in a value of T, below a prefix of the path.
func wants[T any](t *T, prefix, key string, rows []row[T]) []want {
	var wants []want
	for _, row := range rows {
		value, set := row.encode(t)
		if !set {
			continue
		}
		field := row.Field
		field.Path = prefix + row.Path
		if key != "" {
			field.Key = key
		}
		wants = append(wants, want{Field: field, value: value, usual: row.usual, same: row.same, excludes: row.excludes, kept: row.kept})
	}
	return wants
}

// whole is the want of a device, or disk, that is not there yet: all its parts at once.
func whole(field Field, parts []want) want {
	form, _ := formOf(field.Key)
	var properties Properties
	for _, part := range parts {
		if part.value != "" {
			properties = append(properties, Property{part.Part, part.value})
		}
	}
	return want{Field: field, value: form.write(properties)}
}

// isMet reports whether the observed value of a key says what is wanted.
func (w want) isMet(observed string) bool {
	same := w.same
	if same == nil {
		same = sameText
	}
	is, others := w.is(observed), Properties(nil)
	if form, isForm := formOf(w.Key); isForm && w.Part != "" {
		others = form.read(observed)
	}
	contradicted := slices.ContainsFunc(others, func(p Property) bool { return slices.Contains(w.excludes, p.Key) })
	return same(is, w.value) && !contradicted
}

// is returns what the observed value of the key says in the place of the want.
func (w want) is(observed string) string {
	if is := partOf(w.Key, observed, w.Part); is != "" {
		return is
	}
	return w.usual
}

// partOf returns what a key's value says in a part, or as a whole.
func partOf(key, value, part string) string {
	form, isForm := formOf(key)
	switch {
	case part == "" || !isForm || value == "":
		return value
	case form.bare == "file" && part == "format":
		return string(diskFormat(value))
	}
	return form.read(value).Get(part)
}

// in returns the value of the key with what is wanted in it.
func (w want) in(value string) string {
	if w.Part == "" {
		return w.value
	}
	form, _ := formOf(w.Key)
	properties := slices.DeleteFunc(form.read(value), func(p Property) bool { return slices.Contains(w.excludes, p.Key) })
	if w.value == "" {
		return form.write(slices.DeleteFunc(properties, func(p Property) bool { return p.Key == w.Part }))
	}
	return form.write(properties.With(w.Part, w.value))
}

// decodeRows reads what a key of the config says into t.
func decodeRows[T any](t *T, key, value string, rows []row[T]) {
	for _, row := range rows {
		if text := partOf(key, value, row.Part); text != "" && (row.Key == "" || row.Key == key) {
			row.decode(t, text)
		}
	}
}
