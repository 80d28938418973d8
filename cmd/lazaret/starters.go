package main

import (
	"embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"lazaret/lock"
	"lazaret/lock/config"
)

// starters are the texts that a first lazaret.toml is made of: its head, and
// a profile for each agent, as they stand in example.toml.
//
//go:embed starters/*.toml
var starters embed.FS

// plainStarter is the profile that needs no registry.
const plainStarter = "shell"

// starterNames lists the profiles there are, the plain one last.
func starterNames() []string {
	return []string{"claude", "codex", "gemini", "opencode", "aider", plainStarter}
}

func starterText(name string) string {
	text, err := starters.ReadFile("starters/" + name + ".toml")
	if err != nil {
		panic(err) // it is in the program
	}
	return string(text)
}

// ownProfile is the profile of somebody's own image.
const ownProfile = `# %[1]s
#
# Directories of the image whose changes are kept between launches, such as the
# agent's login and what setup installs:
#     persistent_dirs = ["/root", "/usr/local"]
# Commands that are run once inside, before the first session:
#     setup = ["npm install -g some-agent"]
# What starts when nothing is given after "--"; without it, the image's own:
#     command = ["some-agent"]
# Names that the sandbox may reach, at port 443; without any, there is no network:
#     allow_hosts = ["api.example.org"]
[profiles.%[1]s]
image = %[2]s
`

var imageLine = regexp.MustCompile(`(?m)^image = .*$`)

// starter gives the text of a lazaret.toml with profiles. image, where it is
// given, is that of the only profile.
func starter(profiles []string, image string) ([]byte, error) {
	parts := []string{starterText("head")}
	for i, name := range profiles {
		if slices.Contains(profiles[:i], name) {
			return nil, usage("--profile %s: given twice", config.Show(name))
		}
		if err := config.CheckProfileName(name); err != nil {
			return nil, fmt.Errorf("--profile %s: %w", config.Show(name), err)
		}
		known := slices.Contains(starterNames(), name)
		if config.Show(image) != image {
			return nil, usage("--image: %s holds characters that do not show", config.Show(image))
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(image) + `"`
		switch {
		case known && image == "":
			parts = append(parts, starterText(name))
		case known:
			// Not Regexp.ReplaceAllString: a reference may hold a dollar sign.
			parts = append(parts, imageLine.ReplaceAllLiteralString(starterText(name), "image = "+quoted))
		case image == "":
			return nil, hinted{
				fmt.Errorf("--profile %s: lazaret has no such profile to begin with", config.Show(name)),
				"give its image with --image, or name one of " + strings.Join(starterNames(), ", "),
			}
		default:
			parts = append(parts, fmt.Sprintf(ownProfile, name, quoted))
		}
	}
	text := []byte(strings.Join(parts, "\n\n"))
	return text, checkStarter(text)
}

// checkStarter refuses what lock would refuse, while nothing is written yet.
func checkStarter(text []byte) error {
	_, err := config.Load([]config.Layer{{Kind: config.Workspace, Name: lock.WorkspacePath, Data: text}})
	var one *config.Error
	if errors.As(err, &one) {
		return hinted{fmt.Errorf("it would not be a valid %s: %s: %s", lock.WorkspacePath, one.Key, one.Msg), one.Hint()}
	}
	return err
}
