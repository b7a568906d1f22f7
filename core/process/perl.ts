/**
 * The command that runs a perl script with these arguments. Debian and its derivatives always have perl; no module is
 * needed.
 */
export const perlWords = (perl: string, script: string, args: readonly string[]): readonly string[] => [
  perl,
  '-e',
  script.replaceAll(/\s*\n\s*/g, ' ').trim(),
  '--',
  ...args,
]

/**
 * Ends the script when the daemon is gone, which has the other end of its output: a death signal of the parent reaches
 * neither what was begun just before the daemon was killed nor what bubblewrap was only setting up then. Output that is
 * no socket tells nothing.
 */
const endWithoutDaemon = `my $peeked; exit 126 if ${isGone('STDOUT')};`

/**
 * Whether the other end of a socket is closed. 0x42 is MSG_PEEK | MSG_DONTWAIT of Linux; 104 is ECONNRESET, which is
 * said where the other end had not read everything.
 */
function isGone(socket: string): string {
  return `(defined recv(${socket}, $peeked, 1, 0x42) ? $peeked eq "" : $! == 104)`
}

/** A program that cannot be executed says so, as bubblewrap does. */
const execute = 'exec { $ARGV[0] } @ARGV; print STDERR "failed to execute $ARGV[0]: $!\\n"; exit 127'

/**
 * Waits until the first process of bubblewrap's namespace waits for the others: only then it has asked to be ended with
 * its parent, and ends them.
 */
const afterFirst = `
for (1 .. 1000) { open my $first, "<", "/proc/1/stat" or last; last if <$first> =~ /\\) S/;
select undef, undef, undef, 0.001 }
`

/** Runs the program in bubblewrap if the daemon is still there. Arguments: the program. */
export const startWithDaemon = `
${afterFirst}
${endWithoutDaemon}
${execute}
`

/**
 * Enters a Landlock domain (landlock(7); the system call numbers are the same on every architecture) and runs the
 * program. Arguments: the number of rules; for each a letter and a path (r: read and execute, w: everything but making
 * devices, d: use as a device); `closed` to deny TCP, and signals and abstract sockets to the outside; the number of
 * seccomp(2) and a filter in hexadecimal, or 0 and nothing; `first` for the first process of a PID namespace, which the
 * kernel sends no SIGTERM and which waits for the program; the program.
 */
export const enterLandlock = `
${endWithoutDaemon}
my $n = shift; my @rules = splice @ARGV, 0, 2 * $n; my ($closed, $call, $filter, $place) = splice @ARGV, 0, 4;
if ($place eq "first") {
my $pid = fork; exit 126 unless defined $pid;
if ($pid) { while (1) { my $ended = wait; next if $ended > 0 && $ended != $pid; exit 126 if $ended < 0;
exit($? & 127 ? 128 + ($? & 127) : $? >> 8) } }
}
my $abi = syscall(444, 0, 0, 1); exit 126 if $abi < 1;
my $fs = (0, 0x1fff, 0x3fff, 0x7fff, 0x7fff)[$abi] || 0xffff;
my $shut = $closed eq "closed";
my $attributes = pack "Q", $fs;
$attributes .= pack "Q", $shut ? 3 : 0 if $abi >= 4;
$attributes .= pack "Q", $shut ? 3 : 0 if $abi >= 6;
my $set = syscall(444, $attributes, length $attributes, 0); exit 126 if $set < 0;
while (my ($kind, $path) = splice @rules, 0, 2) {
sysopen(my $file, $path, 0x280000) or next;
my $rights = $kind eq "r" ? 13 : $kind eq "w" ? $fs & ~0x840 : 0x8006;
$rights &= 0xc007 unless -d $path;
syscall(445, $set, 1, pack("Ql", $rights & $fs, fileno $file), 0) == 0 or exit 126;
}
syscall(446, $set, 0) == 0 or exit 126;
if ($call) { my $code = pack "H*", $filter;
syscall($call, 1, 0, pack("Sx6P", length($code) / 8, $code)) == 0 or exit 126; }
${execute}
`

/**
 * Listens on a port of its network namespace before the program starts, and forwards each connection to a socket file.
 * Arguments: the file, the port, the program. Each direction of a connection is a separate process, so that neither
 * waits for the other. It ends, with the group of the program, when the daemon is gone: that group may be the one of
 * the first process of a namespace, and a signal to it reaches all others but whoever sends it.
 */
export const bridgePort = `
use Socket; my ($path, $port) = splice @ARGV, 0, 2;
${afterFirst}
${endWithoutDaemon}
socket(my $listener, PF_INET, SOCK_STREAM, 0) or exit 126; setsockopt($listener, SOL_SOCKET, SO_REUSEADDR, 1);
bind($listener, pack_sockaddr_in($port, INADDR_LOOPBACK)) && listen($listener, 128) or exit 126;
my $pid = fork; exit 126 unless defined $pid;
if ($pid) { close $listener; ${execute} }
open my $daemon, ">&STDOUT"; my $follows = -S $daemon;
open STDIN, "<", "/dev/null"; open STDOUT, ">", "/dev/null"; open STDERR, ">", "/dev/null";
$SIG{CHLD} = "IGNORE"; $SIG{PIPE} = "IGNORE"; $SIG{TERM} = "IGNORE"; $0 = "svc-network";
while (1) {
my $ready = ""; vec($ready, fileno $listener, 1) = 1; vec($ready, fileno $daemon, 1) = 1 if $follows;
select($ready, undef, undef, undef) > 0 or next;
if ($follows && vec($ready, fileno $daemon, 1)) {
if (${isGone('$daemon')}) { kill "KILL", -getpgrp(0); exit 126 }
$follows = 0; next;
}
accept(my $near, $listener) or next;
my $serving = fork; next if $serving || !defined $serving;
close $listener; close $daemon; $SIG{CHLD} = "DEFAULT";
my $far; socket($far, PF_UNIX, SOCK_STREAM, 0) && connect($far, pack_sockaddr_un($path)) or exit 1;
my $back = fork; exit 1 unless defined $back;
my ($from, $to) = $back ? ($near, $far) : ($far, $near);
my ($bytes, $got); while ($got = sysread $from, $bytes, 65536) {
my $at = 0; while ($at < $got) { my $put = syswrite $to, $bytes, $got - $at, $at; exit 1 unless $put; $at += $put; }
}
shutdown($to, 1); waitpid $back, 0 if $back; exit 0;
}
`

/**
 * Closes file descriptors that the daemon inherited and every program would inherit. Arguments: how many, their
 * numbers, the program.
 */
export const closeFiles = `
my $n = shift; for (splice @ARGV, 0, $n) { if (open my $file, "<&=", $_) { close $file } }
${execute}
`
