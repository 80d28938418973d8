package trust

import (
	"fmt"
	"reflect"
	"unicode/utf8"
)

// NameError is something that a record cannot say: a name of other bytes than
// UTF-8 would come back as another one, and the yes would be to nothing.
type NameError struct{ Name string }

func (e *NameError) Error() string {
	return fmt.Sprintf("records of trust: %.100q is not UTF-8, so no record can name it", e.Name)
}

// Hint is what to do.
func (e *NameError) Hint() string { return "rename it, or write it in UTF-8" }

// plain finds a string in a record that is not UTF-8.
func plain(v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return &NameError{v.String()}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := plain(v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := plain(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if err := plain(it.Value()); err != nil {
				return err
			}
		}
	}
	return nil
}
