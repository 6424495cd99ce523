package journal

import (
	"errors"
	"os"
	"path/filepath"
)

// Create opens a new file for a journal and writes its first line. The folder is made if it is missing. The file must
// not exist: a recording is never overwritten.
func Create(path string, heading []byte) (*os.File, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(heading); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func open(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
}

// Later returns a file that is made with its folder when the first line is written.
func Later(path string) *LaterFile {
	return &LaterFile{path: path}
}

// LaterFile is a file that is made by its first write.
type LaterFile struct {
	path string
	file *os.File
}

// Write appends to the file.
func (f *LaterFile) Write(text []byte) (int, error) {
	if f.file == nil {
		file, err := open(f.path)
		if err != nil {
			return 0, err
		}
		f.file = file
	}
	return f.file.Write(text)
}

// Close closes the file, if it was made.
func (f *LaterFile) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
