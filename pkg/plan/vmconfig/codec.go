package vmconfig

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// codec writes a field of T as text of a config, and reads it.
type codec[T any] struct {
	// encode says false when the field is not set.
	encode func(*T) (string, bool)
	decode func(*T, string)
}

// owned makes a codec write an empty text where the field is not set: what the config has there goes.
func owned[T any](c codec[T]) codec[T] {
	return codec[T]{
		encode: func(t *T) (string, bool) { text, _ := c.encode(t); return text, true },
		decode: c.decode,
	}
}

func text[T any, S ~string](at func(*T) *S) codec[T] {
	return codec[T]{
		encode: func(t *T) (string, bool) { return string(*at(t)), *at(t) != "" },
		decode: func(t *T, text string) { *at(t) = S(text) },
	}
}

// words is a text that Proxmox VE has other words for; what is not among them stays as it is.
func words[T any, S ~string](at func(*T) *S, theirs map[S]string) codec[T] {
	plain := text(at)
	return codec[T]{
		encode: func(t *T) (string, bool) {
			if word, known := theirs[*at(t)]; known {
				return word, true
			}
			return plain.encode(t)
		},
		decode: func(t *T, text string) {
			plain.decode(t, text)
			for ours, word := range theirs {
				if word == text {
					*at(t) = ours
				}
			}
		},
	}
}

// number is a number that is not set while it is 0.
func number[T any](at func(*T) *int32) codec[T] {
	return codec[T]{
		encode: func(t *T) (string, bool) {
			if *at(t) == 0 {
				return "", false
			}
			return strconv.Itoa(int(*at(t))), true
		},
		decode: func(t *T, text string) { *at(t) = parseInt(text) },
	}
}

// optional is a number that may be 0.
func optional[T any](at func(*T) **int32) codec[T] {
	return codec[T]{
		encode: func(t *T) (string, bool) {
			if *at(t) == nil {
				return "", false
			}
			return strconv.Itoa(int(**at(t))), true
		},
		decode: func(t *T, text string) { *at(t) = ptr.To(parseInt(text)) },
	}
}

func parseInt(text string) int32 {
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || number != float64(int32(number)) {
		return 0
	}
	return int32(number)
}

// flag is a boolean, in the words of its key.
func flag[T any](at func(*T) **bool, no, yes string) codec[T] {
	return codec[T]{
		encode: func(t *T) (string, bool) {
			switch value := *at(t); {
			case value == nil:
				return "", false
			case *value:
				return yes, true
			}
			return no, true
		},
		decode: func(t *T, text string) {
			if text == yes || text == no {
				*at(t) = ptr.To(text == yes)
			} else if known := truth(text); known != "" {
				*at(t) = ptr.To(known == "1")
			}
		},
	}
}

// list is a list of texts that is not set while it is empty.
func list[T any](at func(*T) *[]string, separator string) codec[T] {
	return codec[T]{
		encode: func(t *T) (string, bool) { return strings.Join(*at(t), separator), len(*at(t)) > 0 },
		decode: func(t *T, text string) {
			*at(t) = slices.DeleteFunc(strings.Split(text, separator), func(item string) bool { return item == "" })
		},
	}
}

// quantity is a decimal number.
func quantity[T any](at func(*T) **resource.Quantity) codec[T] {
	return codec[T]{
		encode: func(t *T) (string, bool) {
			if *at(t) == nil {
				return "", false
			}
			return strconv.FormatFloat(float64((*at(t)).MilliValue())/1000, 'f', -1, 64), true // rounded up: 0 is no limit
		},
		decode: func(t *T, text string) {
			if quantity, err := resource.ParseQuantity(text); err == nil {
				*at(t) = &quantity
			}
		},
	}
}

// kibibytes is a number of KiB that Proxmox VE has as MiB, with a fraction.
func kibibytes[T any](at func(*T) *int32) codec[T] {
	const kibi = 1024
	return codec[T]{
		encode: func(t *T) (string, bool) {
			return strconv.FormatFloat(float64(*at(t))/kibi, 'f', -1, 64), *at(t) != 0
		},
		decode: func(t *T, text string) {
			if mebibytes, err := strconv.ParseFloat(text, 64); err == nil && mebibytes >= 0 && mebibytes < 1<<20 {
				*at(t) = int32(mebibytes*kibi + 0.5)
			}
		},
	}
}
