package pvesim

import (
	"path"
	"strconv"
	"strings"
	"time"
)

// cloudInitDelay is how long cloud-init takes to say what it did: it is a Python program.
const cloudInitDelay = 500 * time.Millisecond

// program runs one of the programs that the guest has; false means that there is no such.
func (g *debian) program(cmd AgentCommand) (process, bool) {
	name := path.Base(cmd.Path)
	if dir := path.Dir(cmd.Path); dir != "." && dir != "/bin" && dir != "/usr/bin" && dir != "/usr/sbin" && dir != "/sbin" {
		return process{}, false
	}
	switch name {
	case "cat":
		return g.cat(cmd), true
	case "cloud-init":
		p := printed("status: done\n")
		p.ends = cloudInitDelay
		return p, true
	case "echo":
		return printed(strings.Join(cmd.Arguments, " ") + "\n"), true
	case "false":
		return process{AgentProcess: AgentProcess{Code: 1}}, true
	case "hostname":
		return printed(g.hostname + "\n"), true
	case "id":
		return id(cmd.Arguments), true
	case "sh", "bash":
		return g.shell(cmd), true
	case "sleep":
		return sleep(cmd.Arguments), true
	case "true", "sync", "touch", "systemctl":
		return process{}, true
	case "uname":
		return uname(g.hostname, cmd.Arguments), true
	}
	return process{}, false
}

func printed(text string) process { return process{AgentProcess: AgentProcess{Output: []byte(text)}} }

func failed(code int, text string) process {
	return process{AgentProcess: AgentProcess{Code: code, Errors: []byte(text)}}
}

func (g *debian) cat(cmd AgentCommand) process {
	if len(cmd.Arguments) == 0 {
		return printed(string(cmd.Input))
	}
	var out process
	for _, name := range cmd.Arguments {
		text, ok := g.files[name]
		if !ok {
			out.Code = 1
			out.Errors = append(out.Errors, "cat: "+name+": No such file or directory\n"...)
		}
		out.Output = append(out.Output, text...)
	}
	return out
}

func id(arguments []string) process {
	if len(arguments) > 0 && arguments[0] == "-u" {
		return printed("0\n")
	}
	return printed("uid=0(root) gid=0(root) groups=0(root)\n")
}

func sleep(arguments []string) process {
	if len(arguments) == 0 {
		return failed(1, "sleep: missing operand\nTry 'sleep --help' for more information.\n")
	}
	seconds, err := strconv.ParseFloat(strings.TrimSuffix(arguments[0], "s"), 64)
	if err != nil || seconds < 0 {
		return failed(1, "sleep: invalid time interval '"+arguments[0]+"'\nTry 'sleep --help' for more information.\n")
	}
	return process{ends: time.Duration(seconds * float64(time.Second))}
}

func uname(hostname string, arguments []string) process {
	switch strings.Join(arguments, " ") {
	case "-r":
		return printed(debianKernel + "\n")
	case "-n":
		return printed(hostname + "\n")
	case "-a":
		return printed("Linux " + hostname + " " + debianKernel + " " + debianKernelVersion + " x86_64 GNU/Linux\n")
	}
	return printed("Linux\n")
}

// shell runs a script of simple commands between semicolons: it knows exit and >&2 beside the programs of the guest, and no
// quotes.
func (g *debian) shell(cmd AgentCommand) process {
	script := string(cmd.Input)
	if len(cmd.Arguments) > 1 && cmd.Arguments[0] == "-c" {
		script = cmd.Arguments[1]
	}
	var out process
	for _, line := range strings.FieldsFunc(script, func(r rune) bool { return r == ';' || r == '\n' }) {
		line, toErrors := strings.CutSuffix(strings.TrimSpace(line), ">&2")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if words[0] == "exit" {
			if len(words) > 1 {
				out.Code = atoi(words[1], 2)
			}
			break
		}
		one, known := process{}, words[0] != "sh" && words[0] != "bash"
		if known {
			one, known = g.program(AgentCommand{Name: "exec", Path: words[0], Arguments: words[1:]})
		}
		if !known {
			one = failed(127, "sh: 1: "+words[0]+": not found\n")
		}
		out.add(one, toErrors)
	}
	return out
}

// add appends what one command of a script wrote.
func (p *process) add(one process, toErrors bool) {
	p.Code = one.Code
	p.ends += one.ends
	if toErrors {
		p.Errors = append(p.Errors, one.Output...)
	} else {
		p.Output = append(p.Output, one.Output...)
	}
	p.Errors = append(p.Errors, one.Errors...)
}
