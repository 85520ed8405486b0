package pvesim

// FilesOf reads the files of a seed image, as a booting guest does.
func FilesOf(image []byte) (map[string]string, error) { return Medium{Content: image}.read() }
