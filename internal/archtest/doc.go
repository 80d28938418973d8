// Package archtest holds no code: its tests keep the shape of the module, such
// as which package may import which, and who may start a program.
package archtest
